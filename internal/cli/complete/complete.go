package complete

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster"
)

// completeDeadline is how long a shell may wait for names from the cluster.
const completeDeadline = 3 * time.Second

// Names are those that a cluster has of something, and begin the word that a person types.
type Names func(ctx context.Context, api client.Reader, namespace string) ([]string, error)

// Verbs has a shell complete the words of verbs, and of those below them, with names from the cluster: its argument,
// and the values of its flags.
// A cluster that does not answer completes nothing.
func Verbs(verbs ...*cobra.Command) {
	for _, c := range verbs {
		Verbs(c.Commands()...)
		if c.Flags().Lookup("namespace") == nil || c.Flags().Lookup("filename") != nil {
			continue // one that has files has no names
		}
		c.ValidArgsFunction = first(argument(c))
		for flag, of := range map[string]func(db string) Names{
			"instance": instances, "to": instances, "backup": func(string) Names { return backups }, "zone": zones,
		} {
			if c.Flags().Lookup(flag) == nil || flag == "to" && c.Name() != "switchover" {
				continue
			}
			// It fails only for a flag that is not there.
			_ = c.RegisterFlagCompletionFunc(flag, func(
				c *cobra.Command, args []string, word string,
			) ([]string, cobra.ShellCompDirective) {
				if len(args) == 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return find(c, word, of(args[0]))
			})
		}
	}
}

// argument are the names of what a verb is about.
func argument(verb *cobra.Command) Names {
	switch {
	case verb.HasParent() && verb.Parent().Name() == "drill":
		return faultDrills
	case verb.Name() == "verify":
		return both(sampleDBs, backups)
	case verb.Name() == "rebuild":
		return allInstances
	}
	return sampleDBs
}

// first completes the first argument of a verb. After "--" of psql, and after the first, there is nothing to know.
func first(of Names) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return find(c, word, of)
	}
}

// find asks the cluster that the flags of the command line say.
func find(c *cobra.Command, word string, of Names) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completeDeadline)
	defer cancel()
	value := func(flag string) string { return c.Flags().Lookup(flag).Value.String() }
	at := cluster.Cluster{Kubeconfig: value("kubeconfig"), Context: value("context"), Namespace: value("namespace")}
	api, err := at.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := of(ctx, api, at.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, word) })
	return found, cobra.ShellCompDirectiveNoFileComp
}

// namesIn are the names of all objects of a kind in the namespace, by an empty list of that kind.
func namesIn(kind client.ObjectList) Names {
	return func(ctx context.Context, api client.Reader, namespace string) (out []string, err error) {
		list, ok := kind.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", kind)
		}
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			one, err := meta.Accessor(o)
			if err == nil {
				out = append(out, one.GetName())
			}
			return err
		})
		return out, err
	}
}

var (
	sampleDBs   = namesIn(&v1.SampleDBList{})
	backups     = namesIn(&v1.DatabaseBackupList{})
	faultDrills = namesIn(&v1.FaultDrillList{})
)

// instances are those of a SampleDB.
func instances(db string) Names {
	return func(ctx context.Context, api client.Reader, namespace string) (out []string, err error) {
		one := &v1.SampleDB{}
		err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: db}, one)
		for _, i := range one.Status.InstanceStatuses {
			out = append(out, i.Name)
		}
		return out, err
	}
}

// zones are those in which instances of a SampleDB are.
func zones(db string) Names {
	return func(ctx context.Context, api client.Reader, namespace string) (out []string, err error) {
		one := &v1.SampleDB{}
		err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: db}, one)
		for _, i := range one.Status.InstanceStatuses {
			if i.Zone != "" && !slices.Contains(out, i.Zone) {
				out = append(out, i.Zone)
			}
		}
		return out, err
	}
}

// allInstances are those of all SampleDBs.
func allInstances(ctx context.Context, api client.Reader, namespace string) (out []string, err error) {
	var list v1.SampleDBList
	err = api.List(ctx, &list, client.InNamespace(namespace))
	for _, db := range list.Items {
		for _, i := range db.Status.InstanceStatuses {
			out = append(out, i.Name)
		}
	}
	return out, err
}

func both(a, b Names) Names {
	return func(ctx context.Context, api client.Reader, namespace string) ([]string, error) {
		one, err := a(ctx, api, namespace)
		if err != nil {
			return nil, err
		}
		other, err := b(ctx, api, namespace)
		return append(one, other...), err
	}
}
