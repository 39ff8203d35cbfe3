package process

import (
	"github.com/spf13/pflag"

	"toban.dev/internal/naming"
	"toban.dev/internal/work/sendpasswords"
)

// passwords is what the Pod of a PostgreSQL does that mounts the Secrets with passwords.
var passwords = podWork{kinds: []kind{
	{
		"passwords", "Tell the operator the passwords of a PostgreSQL, sealed, as the termination message", "passwords",
		does(sendpasswords.Run, passwordsFlags),
	},
}}

func passwordsFlags(f *pflag.FlagSet, o *sendpasswords.Options) {
	f.StringVar(&o.Secrets, "secrets", naming.PathPasswords, "folder with a folder for each Secret")
	f.StringVar(&o.Known, "known", naming.PathKnown, "file for the digest of what the operator has been told")
	f.StringVar(&o.SealFor, "seal-for", "", "the operator's public key")
	terminationFlag(f, &o.Termination, "file for the sealed passwords")
}
