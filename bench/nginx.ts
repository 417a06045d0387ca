import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where Debian has it, which is not on everybody's PATH. */
const places = ['nginx', '/usr/sbin/nginx', '/usr/local/sbin/nginx'];

export interface Nginx {
  readonly command: string;
  readonly version: string;
}

/** null: it is not installed. */
export function findNginx(): Nginx | null {
  for (const command of places) {
    const { status, stderr } = spawnSync(command, ['-v'], { encoding: 'utf8' });
    if (status === 0) return { command, version: stderr.trim().replace(/^.*\//, '') };
  }
  return null;
}

/** Gives the arguments. */
export function configureNginx(dir: string, port: number, upstreamPort: number): readonly string[] {
  const file = join(dir, 'nginx.conf');
  writeFileSync(file, configOf(dir, port, upstreamPort));
  return ['-e', join(dir, 'nginx.log'), '-p', dir, '-c', file, '-g', 'daemon off;'];
}

/** As Debian has it: a worker a processor, one line a request. Without the keep-alive lines it would connect each time. */
function configOf(dir: string, port: number, upstreamPort: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${join(dir, `nginx-${name}`)};`)
    .join('\n');
  return `worker_processes auto;
pid ${join(dir, 'nginx.pid')};
events { worker_connections 768; }
http {
${temporary}
  access_log ${join(dir, 'nginx-access.log')};
  upstream service {
    server 127.0.0.1:${upstreamPort};
    keepalive 128;
  }
  server {
    listen 127.0.0.1:${port};
    # A client is never sent away in the middle of a turn.
    keepalive_requests 1000000;
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;
}
