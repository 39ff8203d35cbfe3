# The image it stands in for has this user; Debian's package would run as postgres.

echo 'pgbouncer:x:996:' >> "$root"/etc/group
echo 'pgbouncer:x:998:996:pgbouncer user:/nonexistent:/bin/false' >> "$root"/etc/passwd
mkdir -p "$root"/etc/postgresql-common
echo 'create_main_cluster = false' > "$root"/etc/postgresql-common/createcluster.conf
