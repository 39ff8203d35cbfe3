# Lays nginx out like the official image: conf.d, /usr/share/nginx/html, logs on
# the standard streams.

rm -rf "$root"/etc/nginx/sites-* "$root"/etc/nginx/nginx.conf "$root"/var/www
mkdir -p "$root"/etc/nginx/conf.d "$root"/usr/share/nginx/html "$root"/var/log/nginx \
  "$root"/var/cache/nginx "$root"/var/lib/nginx
ln -sf /dev/stdout "$root"/var/log/nginx/access.log
ln -sf /dev/stderr "$root"/var/log/nginx/error.log
echo '<!DOCTYPE html><title>Welcome to nginx!</title><h1>Welcome to nginx!</h1>' \
  > "$root"/usr/share/nginx/html/index.html
cat > "$root"/etc/nginx/nginx.conf <<'EOF'
user nginx;
worker_processes auto;
error_log /var/log/nginx/error.log notice;
pid /var/run/nginx.pid;
events { worker_connections 1024; }
http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    access_log /var/log/nginx/access.log;
    sendfile on;
    keepalive_timeout 65;
    include /etc/nginx/conf.d/*.conf;
}
EOF
cat > "$root"/etc/nginx/conf.d/default.conf <<'EOF'
server {
    listen 80;
    listen [::]:80;
    server_name localhost;
    location / {
        root /usr/share/nginx/html;
        index index.html index.htm;
    }
}
EOF
