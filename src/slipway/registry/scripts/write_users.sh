# write_users: lines name:password on stdin become an htpasswd file. One whose password is the same keeps its line, so that
# the same users leave the same file. Perl is part of every Debian, and crypt knows bcrypt there.
set -eu
umask 027
mkdir -p /etc/slipway-registry
exec perl -e '
    use strict; my $file = "/etc/slipway-registry/htpasswd"; my (%had, @now);
    if (open my $in, "<", $file) { while (<$in>) { chomp; my ($n, $h) = split /:/, $_, 2; $had{$n} = $h if defined $h } }
    open my $random, "<:raw", "/dev/urandom" or die "no /dev/urandom";
    while (my $line = <STDIN>) {
        chomp $line; my ($name, $password) = split /:/, $line, 2; my $hash = $had{$name};
        unless (defined $hash && crypt($password, $hash) eq $hash) {
            read $random, my $bytes, 22; my @letters = (".", "/", "A".."Z", "a".."z", 0..9);
            my $salt = join "", map { $letters[ord($_) % 64] } split //, $bytes;
            $hash = crypt($password, "\$2y\$10\$$salt");
            die "this machine has no bcrypt\n" unless defined $hash && $hash =~ /^\$2y\$/;
        }
        push @now, "$name:$hash\n";
    }
    my $text = join "", @now; my $before = "";
    if (open my $in, "<", $file) { local $/; $before = <$in> // "" }
    exit 0 if $text eq $before;
    open my $out, ">", "$file.slipway" or die "$file.slipway: $!\n"; print $out $text; close $out or die "$file: $!\n";
    rename "$file.slipway", $file or die "$file: $!\n";
'
