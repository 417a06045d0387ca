/** Asked once of the embedded server: it answers only when it can really serve. */
export const PING = 'SELECT 1';

export const CREATE_DATABASE = 'CREATE DATABASE oncegate';
