# Removes from a finished root file system what no container needs: nothing is
# ever installed or upgraded in it again. $root is the root file system. Many
# small files cost more than a large one: they are what loading an image takes.

rm -rf \
  "$root"/usr/share/man/* "$root"/usr/share/doc/* "$root"/usr/share/info/* \
  "$root"/usr/share/lintian "$root"/usr/share/bash-completion "$root"/usr/share/common-licenses \
  "$root"/usr/share/i18n "$root"/usr/share/gcc "$root"/usr/share/locale \
  "$root"/usr/lib/*-linux-gnu/gconv \
  "$root"/var/cache/* "$root"/var/log/* "$root"/var/lib/dpkg/info \
  "$root"/var/lib/ucf "$root"/var/lib/systemd

# The host's, copied for the installation; a private key everyone would share.
rm -f "$root"/etc/resolv.conf "$root"/etc/hostname \
  "$root"/etc/ssl/private/ssl-cert-snakeoil.key "$root"/etc/ssl/certs/ssl-cert-snakeoil.pem

# Perl: Debian's maintainer scripts and wrappers need it, the servers do not.
rm -rf "$root"/usr/share/perl "$root"/usr/share/perl5 "$root"/usr/share/debconf "$root"/etc/perl
rm -rf "$root"/usr/lib/*-linux-gnu/perl "$root"/usr/lib/*-linux-gnu/perl-base
rm -f "$root"/usr/bin/perl* "$root"/usr/lib/*-linux-gnu/libperl.so*
