# PgBouncer without a configuration, and without the service of Debian's package.

rm -rf "$root"/etc/pgbouncer "$root"/etc/init.d/pgbouncer "$root"/usr/share/postgresql-common "$root"/etc/logrotate.d
ln -sf ../sbin/pgbouncer "$root"/usr/bin/pgbouncer
