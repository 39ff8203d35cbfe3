package process

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toban.dev/internal/work"
)

// kind is a kind of work that is done in a Pod. A new one is a row here, its flags, and a function of package work, or
// of a folder below it.
type kind struct {
	// name is what follows `toban work` on the command line of the Pod.
	name, short string
	// former is what followed `toban` there before: a Job that an operator of v0.1.0 has made may run this program.
	former string
	// flags adds the flags, and returns what to do once they are read.
	flags func(f *pflag.FlagSet) func(ctx context.Context) error
}

// coreKinds are the kinds of work that a SampleDB needs to live, to be backed up and restored.
var coreKinds = []kind{
	{
		"take", "Take a base backup (in the Pod of a DatabaseBackup)", "backup take",
		does(work.Take, takeFlags),
	},
	{
		"retain", "Remove what spec.backup.retention does not keep (in a Pod of its own)", "backup retain",
		does(work.Retain, archiveFlags),
	},
	{
		"keys", "Say which keys the Secret of an archive's encryption has (in the Pod of a backup)", "backup keys",
		does(func(_ context.Context, o work.KeysOptions) error { return work.LookAtKeys(o) }, keysFlags),
	},
	{
		"restore", "Restore a database into an instance's volume (in the Pod of a restore)", "backup restore",
		does(work.Restore, restoreFlags),
	},
	{
		"verify", "Restore a backup into a scratch volume, and check it (in the Pod of a verification)",
		"backup verify", does(work.Verify, verifyFlags),
	},
	{
		"inspect", "Look through what `toban work verify` has restored, and ask it the assertions", "backup inspect",
		does(work.Inspect, inspectFlags),
	},
	{
		"init", "Make the application's role, database and extensions and run the first SQL, each exactly once", "init",
		does(work.Init, initFlags),
	},
	{
		"finish", "Do what is left in the databases after a change of the image", "finish",
		does(work.Finish, finishFlags),
	},
	{
		"image", "Say what is in the PostgreSQL image that this runs in (in a Pod of its own)", "image",
		does(work.Image, imageFlags),
	},
}

// kinds are all kinds of work.
func kinds() []kind {
	all := slices.Clone(coreKinds)
	for _, a := range annexWork {
		all = append(all, a.kinds...)
	}
	return all
}

// does is what a kind does with the options that its flags set.
func does[Options any](
	do func(context.Context, Options) error, flags func(*pflag.FlagSet, *Options),
) func(*pflag.FlagSet) func(context.Context) error {
	return func(f *pflag.FlagSet) func(context.Context) error {
		var o Options
		flags(f, &o)
		return func(ctx context.Context) error { return do(ctx, o) }
	}
}

// AddWork adds `toban work KIND` to the verbs of the program: the one that Pods call to do a kind of work, and that
// people have no need to. It goes by its former names, too.
func AddWork(root *cobra.Command) {
	for _, k := range kinds() {
		for _, name := range []string{"work " + k.name, k.former} {
			words := strings.Fields(name)
			parent, last := root, len(words)-1
			for _, word := range words[:last] {
				parent = child(parent, word)
			}
			parent.AddCommand(k.command(words[last]))
		}
	}
	for _, a := range annexWork {
		for parent, verb := range a.verbs {
			child(root, parent).AddCommand(verb())
		}
	}
}

// child is a command below another one: that which is there, or a new one, which only has others below it.
func child(of *cobra.Command, name string) *cobra.Command {
	for _, c := range of.Commands() {
		if c.Name() == name {
			return c
		}
	}
	c := &cobra.Command{Use: name, Short: "Do what a Pod is for (its own command)", Hidden: true}
	of.AddCommand(c)
	return c
}

// command is the verb of a kind.
func (k kind) command(name string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: k.short, Hidden: true, Args: cobra.NoArgs}
	do := k.flags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error { return do(c.Context()) }
	return c
}
