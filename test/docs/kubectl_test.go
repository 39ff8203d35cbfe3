package docs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/cli"
	"toban.dev/internal/operator/scheme"
)

// errFewWords is said of a command that names a verb, and not what that is for.
var errFewWords = errors.New("the command needs more words")

// kubectl looks a command up in the real kubectl, or in the real plugin.
func kubectl(words []string) error {
	if len(words) == 0 {
		return errFewWords
	}
	if words[0] == "toban" {
		_, err := parsed(cli.Plugin(""), words[1:])
		return err
	}
	c, err := parsed(cmd.NewKubectlCommand(cmd.KubectlOptions{
		IOStreams: genericiooptions.NewTestIOStreamsDiscard(), ConfigFlags: genericclioptions.NewConfigFlags(true),
	}), words)
	if err != nil {
		return err
	}
	for _, look := range []func(*cobra.Command) error{namesKinds, namesFiles, namesAnnotations, namesCondition} {
		if err := look(c); err != nil {
			return err
		}
	}
	return nil
}

// parsed is the command that words lead to, with its options and names.
func parsed(program *cobra.Command, words []string) (*cobra.Command, error) {
	c, rest, err := program.Find(words)
	if err != nil {
		return nil, err
	}
	if !c.HasParent() {
		return nil, errFewWords
	}
	if err := c.ParseFlags(rest); err != nil {
		return nil, err
	}
	if c.HasSubCommands() && len(c.Flags().Args()) > 0 && c.Name() != "create" && c.Name() != "drill" {
		return nil, fmt.Errorf("%s has no verb %s", c.CommandPath(), c.Flags().Arg(0))
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		if len(c.Flags().Args()) == 0 {
			return nil, errFewWords
		}
		return nil, err
	}
	return c, nil
}

// namesKinds looks whether the cluster has the kinds that a command names.
func namesKinds(c *cobra.Command) error {
	names := c.Flags().Args()
	if len(names) == 0 || !slices.Contains([]string{
		"get", "describe", "delete", "wait", "patch", "annotate", "label", "scale", "edit", "explain", "events",
	}, c.Name()) {
		return nil
	}
	kinds, rest, several := names[0], names[1:], strings.Contains(names[0], "/")
	if several { // kubectl get pod/a service/b
		rest = nil
	}
	kinds, _, _ = strings.Cut(kinds, "/")
	for _, kind := range strings.Split(kinds, ",") {
		if c.Name() == "explain" {
			kind, _, _ = strings.Cut(kind, ".")
		}
		if !resources()[strings.ToLower(kind)] && kind != "all" {
			return fmt.Errorf("the cluster has no kind %s", kind)
		}
	}
	if c.Name() == "annotate" && len(rest) == 0 && !several && !c.Flags().Changed("all") {
		return errFewWords
	}
	return nil
}

// resources are all names of kinds that a cluster with Toban has.
var resources = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{"crd": true, "customresourcedefinitions": true}
	for _, short := range strings.Fields("po svc deploy sts pvc pv ns cm sa pdb netpol hpa cj ing no ev sc quota") {
		all[short] = true
	}
	known, err := scheme.New()
	if err != nil {
		panic(err)
	}
	for kind := range known.AllKnownTypes() {
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		all[plural.Resource], all[singular.Resource] = true, true
	}
	for _, kind := range ourKinds() {
		for _, short := range kind.Spec.Names.ShortNames {
			all[short] = true
		}
		all[kind.Name] = true
	}
	return all
})

// ourKinds are the CustomResourceDefinitions.
var ourKinds = sync.OnceValue(func() []apiextensionsv1.CustomResourceDefinition {
	paths, err := filepath.Glob(root + "/config/crd/*.yaml")
	var all []apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		var text []byte
		var kind apiextensionsv1.CustomResourceDefinition
		if text, err = os.ReadFile(path); err == nil {
			err = yaml.UnmarshalStrict(text, &kind)
		}
		if err != nil {
			break
		}
		all = append(all, kind)
	}
	if err != nil || len(all) == 0 {
		panic(fmt.Sprintf("there are %d kinds: %v", len(all), err))
	}
	return all
})

// namesFiles looks for the files of the repository that a command names. Those of a release are made first, and a
// name without a folder is a reader's own file.
func namesFiles(c *cobra.Command) error {
	var names []string
	if f := c.Flags().Lookup("filename"); f != nil {
		all, err := c.Flags().GetStringSlice("filename")
		if err != nil {
			return err
		}
		names = append(names, all...)
	}
	if f := c.Flags().Lookup("kustomize"); f != nil && f.Changed {
		names = append(names, f.Value.String())
	}
	for _, name := range names {
		folder, _, within := strings.Cut(name, "/")
		if !within || folder == "dist" || folder == ".local" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// namesAnnotations looks whether Toban knows the annotations and labels of its own that a command sets or selects by.
func namesAnnotations(c *cobra.Command) error {
	text, err := os.ReadFile(root + "/docs/reference/annotations.md")
	if err != nil {
		return err
	}
	words := c.Flags().Args()
	if f := c.Flags().Lookup("selector"); f != nil {
		words = append(words, f.Value.String())
	}
	for _, word := range words {
		if name := regexp.MustCompile(`^toban\.dev/[a-z-]*[a-z]`).FindString(word); name != "" &&
			!strings.Contains(string(text), "`"+name+"`") {
			return fmt.Errorf("there is no annotation or label %s", name)
		}
	}
	return nil
}

// namesCondition looks whether one of our kinds has the conditions that a command waits for.
func namesCondition(c *cobra.Command) error {
	f := c.Flags().Lookup("for")
	if f == nil {
		return nil
	}
	waits, several := f.Value.(pflag.SliceValue)
	if !several {
		return nil // kubectl events --for=pod/a
	}
	for _, what := range waits.GetSlice() {
		condition, found := strings.CutPrefix(what, "condition=")
		if condition, _, _ = strings.Cut(condition, "="); !found {
			continue
		}
		if err := isCondition(condition); err != nil {
			return err
		}
	}
	return nil
}

// isCondition looks for a condition in the reference.
func isCondition(name string) error {
	paths, err := filepath.Glob(root + "/docs/reference/*conditions.md")
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "| `"+name+"` |") {
			return nil
		}
	}
	return fmt.Errorf("no kind has a condition %s", name)
}

// A test that takes every command would show nothing.
func TestCommandsThatThereAreNotAreFound(t *testing.T) {
	for _, command := range []string{
		"kubectl toban statuss shop", "kubectl toban status", "kubectl toban restore shop --two=1",
		"kubectl gets pods",
		"kubectl get sampledbz", "kubectl get pods --wide", "kubectl wait sampledb shop --for=condition=Reddy",
		"kubectl apply -f config/examples/nothing.yaml", "kubectl apply -k config/nothing",
		"kubectl annotate sampledb shop toban.dev/switch=any", "kubectl rollout state deployment/a",
		"kubectl get pods -l toban.dev/sample=shop", "make tests", "hack/nothing.sh", "go test ./internal/nothing",
		"bin/localkube ups", "bin/localkube image push --to a b", "unheardof --of",
	} {
		all, err := calls(command)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s has the commands %q, %v", command, all, err)
		}
		if err := isThere(all[0]); err == nil {
			t.Errorf("%s is taken", command)
		}
	}
	if _, err := calls("kubectl get pods 'a"); err == nil {
		t.Error("a quotation without its end is taken")
	}
	nested, err := calls(`a=$(kubectl get pods | jq .) && env B="$(date)" psql -c "x $a"` +
		"\n(cd dist; sha256sum --check S)")
	if want := 7; err != nil || len(nested) != want {
		t.Errorf("%d commands were found, want %d: %q, %v", len(nested), want, nested, err)
	}
}
