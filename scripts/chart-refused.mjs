const good = {
  image: { repository: 'registry.example/oncegate' },
  store: { existingSecret: { name: 'store' } },
  config: { upstream: { url: 'http://orders:3000' } },
};
const withConfig = (config) => ({ ...good, config: { ...good.config, ...config } });

/** Values that could not work, and what Helm says about them. */
export const refused = [
  { what: 'no image', values: { ...good, image: {} }, says: /image\.repository is missing/ },
  { what: 'no store', values: { ...good, store: {} }, says: /store\.existingSecret\.name is missing/ },
  { what: 'no upstream', values: { ...good, config: {} }, says: /config\.upstream\.url is missing/ },
  { what: 'a typo', values: { ...good, replica: 3 }, says: /'replica' not allowed/ },
  { what: 'a typo below', values: { ...good, service: { prot: 80 } }, says: /'prot' not allowed/ },
  {
    what: 'a typo in config',
    values: withConfig({ defaults: { retension: '24h' } }),
    says: /'\/config\/defaults'.*'retension' not allowed/,
  },
  { what: 'a wrong value in config', values: withConfig({ lease: '1 minute' }), says: /'\/config\/lease'/ },
  {
    what: 'a password in a ConfigMap',
    values: withConfig({ store: { url: 'postgres://user:password@host/database' } }),
    says: /config\.store\.url: a ConfigMap is no place/,
  },
  {
    what: 'a store for each pod',
    values: withConfig({ store: { embedded: true } }),
    says: /config\.store\.embedded: each pod/,
  },
  {
    what: 'a port that only the pod reaches',
    values: withConfig({ listen: { data: '127.0.0.1:8080' } }),
    says: /config\.listen\.data is 127\.0\.0\.1:8080: Service and probes/,
  },
  {
    what: 'a port that only the pod knows',
    values: withConfig({ listen: { ops: '0.0.0.0:${PORT}' } }),
    says: /config\.listen\.ops/,
  },
  {
    what: 'a drain whose time is not known',
    values: withConfig({ drain: { max: '${DRAIN}' } }),
    says: /config\.drain\.max is \$\{DRAIN\}: terminationGracePeriodSeconds/,
  },
];
