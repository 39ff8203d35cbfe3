package v1_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// crdFiles are the CRDs of all kinds, those of the other groups too.
func crdFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("the CRDs are %v, %v", files, err)
	}
	return files
}

// A kube-apiserver refuses a CRD whose CEL rules do not compile or may cost too
// much; so does this test, with the same code and without a server.
func TestRulesAreAcceptedByTheAPIServer(t *testing.T) {
	for _, file := range crdFiles(t) {
		for _, e := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), readCRD(t, file)) {
			t.Errorf("%s: %v", file, e)
		}
	}
}

// Others' CRDs of 400 KB and more can't be installed with plain kubectl apply,
// which keeps a copy in an annotation of at most 256 KB.
func TestCRDFitsIntoAnAnnotation(t *testing.T) {
	for _, file := range crdFiles(t) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 128<<10 {
			t.Errorf("%s has %d bytes, wanted at most 128 KiB", file, info.Size())
		}
	}
}

func readCRD(t *testing.T, crdFile string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, external); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	external.Status.StoredVersions = []string{"v1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}
