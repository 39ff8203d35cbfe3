# The official image's user; Debian's package would use www-data.

echo 'nginx:x:101:' >> "$root"/etc/group
echo 'nginx:x:101:101:nginx user:/nonexistent:/bin/false' >> "$root"/etc/passwd
