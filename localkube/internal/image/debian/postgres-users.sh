# Runs before any package that looks at users is installed: the official image
# has uid and gid 999, and Debian's scripts keep a user that exists.

echo 'postgres:x:999:' >> "$root"/etc/group
echo 'postgres:x:999:999::/var/lib/postgresql:/bin/bash' >> "$root"/etc/passwd
echo 'postgres:!:::::::' >> "$root"/etc/shadow

# Without this the installation makes a database cluster.
mkdir -p "$root"/etc/postgresql-common
echo 'create_main_cluster = false' > "$root"/etc/postgresql-common/createcluster.conf
