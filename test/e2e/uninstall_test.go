//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"toban.dev/internal/naming"
)

// install is what the operator is installed and removed by; crds is what has to stay while there are databases.
const (
	install = "../../config/install.yaml"
	crds    = "../../config/crds.yaml"
)

// The operator is removed as it was installed. The databases run on, and one that is installed again goes on with them.
func TestLongTheOperatorIsRemovedAndInstalledAgain(t *testing.T) {
	s := beginAlone(t)
	s.apply(sampleDB("shop", 2, "deletionPolicy: Delete"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	before, root := s.lives("shop"), s.root()
	image := s.operator("get", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	t.Cleanup(func() { s.install(image) }) // the namespace goes only with an operator

	s.operator("delete", "-f", install, "--timeout=2m")
	s.until(func(context.Context) error {
		if pods := s.operator("get", "pods", "-l", operators, "-o", "name"); pods != "" {
			return fmt.Errorf("there is still %s", pods)
		}
		return nil
	})
	if db, err := s.SampleDB(s.ctx, "shop"); err != nil || db.DeletionTimestamp != nil {
		t.Fatalf("the SampleDB is being deleted since %v (%v)", db.DeletionTimestamp, err)
	}
	s.sql("shop", "INSERT INTO kept VALUES (101)")

	s.install(image)
	if now := s.root(); now != root {
		t.Errorf("the root secret was %s and is %s", root, now)
	}
	s.patch("shop", `{"postgresql":{"parameters":{"work_mem":"5MB"}}}`)
	s.ready("shop")
	if got := s.ask("shop", "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem is %s, want 5MB", got)
	}
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "101" {
		t.Errorf("kept has %s rows, want 101", n)
	}
	if after := s.lives("shop"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// Somebody deletes the kinds while there is a database, and the operator runs. That is no wish about its data: a
// SampleDB of its name takes the volumes over, although the former one had been told to delete them. See
// docs/install.md.
func TestLongTheKindsAreDeletedAndMadeAgain(t *testing.T) {
	s := beginAlone(t)
	shop := sampleDB("shop", 2, "deletionPolicy: Delete")
	s.apply(shop)
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	t.Cleanup(func() { s.operator("apply", "--server-side", "-f", crds) }) // also where the story fails

	s.operator("delete", "customresourcedefinitions", "--wait=false", naming.DefinitionSampleDB,
		naming.DefinitionPostgreSQL)
	s.until(func(context.Context) error {
		if left := s.operator("get", "customresourcedefinitions", "-o", "name", "--ignore-not-found",
			naming.DefinitionSampleDB, naming.DefinitionPostgreSQL); left != "" {
			return fmt.Errorf("there is still %s", left)
		}
		return nil
	})
	s.until(func(context.Context) error {
		if pods := s.run("get", "pods", "-l", labels.FormatLabels(naming.InstanceSelector("shop")),
			"-o", "name"); pods != "" {
			return fmt.Errorf("its Pods run on: %s", pods)
		}
		return nil
	})

	s.operator("apply", "--server-side", "-f", crds)
	s.until(func(context.Context) error {
		_, err := system.KubectlWith(s.ctx, shop, "apply", "-n", string(s.Namespace), "-f", "-")
		return err
	})
	s.ready("shop")
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "100" {
		t.Errorf("kept has %s rows, want 100", n)
	}
	s.everyInstanceStreams("shop", 1)
}

// root is which root secret the operator has.
func (s *story) root() string {
	s.Helper()
	return s.operator("get", "secret", "toban-operator", "-o", "jsonpath={.metadata.uid}")
}

// manifest is config/install.yaml, or another manifest, with another image of the operator.
func (s *story) manifest(image string, file ...string) (string, error) {
	c := exec.CommandContext(s.ctx, "go", append([]string{"run", "./hack/release", "manifest", image}, file...)...)
	c.Dir = "../.."
	text, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("name another image: %w", err)
	}
	return string(text), nil
}

// install installs the operator with an image, as make up does.
func (s *story) install(image string) {
	s.Helper()
	manifest, err := s.manifest(image)
	must(s.T, err)
	_, err = system.KubectlWith(s.ctx, manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	must(s.T, err)
	s.operatorRuns()
}
