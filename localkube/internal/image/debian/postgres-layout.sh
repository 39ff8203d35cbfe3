# Lays PostgreSQL out like the official image. $major is its version.

home="$root"/usr/lib/postgresql/$major
chroot "$root" localedef -i en_US -c -f UTF-8 en_US.UTF-8

# Debian's programs in /usr/bin are links to a wrapper in Perl, which is left
# out: link the real ones instead.
find "$root"/usr/bin "$root"/usr/sbin -lname '*pg_wrapper' -delete
for program in "$home"/bin/*; do
  ln -sf /usr/lib/postgresql/"$major"/bin/"$(basename "$program")" "$root"/usr/bin/
done
rm -rf "$root"/usr/share/postgresql-common "$root"/etc/postgresql-common "$root"/etc/postgresql \
  "$root"/usr/share/postgresql/"$major"/man
find "$root"/etc/alternatives -xtype l -name '*.gz' -delete # manual pages

# JIT compilation brings 180 MB of LLVM; a server without it plans without it.
rm -rf "$home"/lib/bitcode "$home"/lib/llvmjit*.so
rm -f "$root"/usr/lib/*-linux-gnu/libLLVM* "$root"/usr/lib/*-linux-gnu/libz3.so* \
  "$root"/usr/lib/llvm-*/lib/libLLVM*

# As the official image: reachable from other containers, one group-writable
# directory for sockets, data directories that any uid can begin to use.
sed -i "s/^#*listen_addresses *=.*/listen_addresses = '*'/" \
  "$root"/usr/share/postgresql/"$major"/postgresql.conf.sample
install -d -o 999 -g 999 -m 3777 "$root"/run/postgresql
if [ "$major" -ge 18 ]; then
  install -d -o 999 -g 999 -m 1777 "$root"/var/lib/postgresql
  ln -s . "$root"/var/lib/postgresql/data
else
  install -d -o 999 -g 999 "$root"/var/lib/postgresql
  install -d -o 999 -g 999 -m 1777 "$root"/var/lib/postgresql/data
fi
