//go:build e2e

package e2e

import (
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/test/outside"
)

// What can't be is refused by kubectl apply with a sentence.
func TestBadInputIsRefused(t *testing.T) {
	s := begin(t)
	edit := func(old, instead string) string { return strings.Replace(sampleDB("shop", 1), old, instead, 1) }
	cases := map[string]struct{ manifest, words string }{
		"an unknown version":       {edit("version: 17", "version: 14"), "15, 16, 17, 18 or 19"},
		"no instances":             {edit("instances: 1", "instances: 0"), "from 1 to 9"},
		"negative instances":       {edit("instances: 1", "instances: -1"), "from 1 to 9"},
		"too many instances":       {edit("instances: 1", "instances: 10"), "from 1 to 9"},
		"a size that is no size":   {edit("512Mi", "much"), "a quantity such as 10Gi"},
		"a size that is too small": {edit("512Mi", "1Mi"), "at least 256Mi"},
		"a name of 41 characters":  {edit("name: shop", "name: "+strings.Repeat("a", 41)), "at most 40 characters"},
		"a name that is a number":  {edit("name: shop", `name: "1shop"`), "must start with a letter"},
		"an unknown field":         {edit("version: 17", "versionn: 17"), "unknown field"},
		"no version":               {edit("version: 17\n", "image: x\n"), "version"},
		"a parameter with a newline": {
			sampleDB("shop", 1, `postgresql: {parameters: {"work_mem\n": 1MB}}`), "a parameter name must be",
		},
		"a value with a newline": {
			sampleDB("shop", 1, `postgresql: {parameters: {work_mem: "1MB\nport=1"}}`), "must be one line",
		},
		"the operator's own parameter": {
			sampleDB("shop", 1, `postgresql: {parameters: {Archive_Mode: "on"}}`), "belongs to the operator",
		},
		"a reserved owner":     {sampleDB("shop", 1, "init: {owner: postgres}"), "reserved"},
		"a reserved database":  {sampleDB("shop", 1, "init: {database: template1}"), "a name of its own"},
		"a source of two":      {sampleDB("shop", 1, "init: {sql: [{}]}"), "either configMap or secret"},
		"a broken line of hba": {sampleDB("shop", 1, `postgresql: {hba: ["all all"]}`), "must start with local, host"},
	}
	for name, c := range cases {
		if err := s.Apply(s.ctx, c.manifest); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s gives %v, want a sentence with %q", name, err, c.words)
		}
	}
}

// What can't change is refused, too.
func TestWhatCannotChange(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 1))
	for patch, words := range map[string]string{
		`{"version":16}`: "can't go below the major version of the data",
		`{"storage":{"storageClassName":"other"}}`: "storageClassName can't be changed",
		`{"storage":{"size":"300Mi"}}`:             "can't shrink",
	} {
		_, err := s.Kubectl(s.ctx, "patch", "sampledb", "shop", "--type=merge", "-p", `{"spec":`+patch+`}`)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s gives %v, want a sentence with %q", patch, err, words)
		}
	}
}

// An image without PostgreSQL in it, such as the operator's own.
func TestImageWithoutPostgreSQL(t *testing.T) {
	s := begin(t)
	image, err := outside.Namespace("toban-system").Kubectl(s.ctx, "get", "deployment", "toban-operator",
		"-o", "jsonpath={.spec.template.spec.containers[0].image}")
	must(t, err)
	s.apply(sampleDB("shop", 1, "image: "+image))
	message := s.condition("shop", v1.ConditionReady, "False", v1.ReasonImageUnusable)
	if !strings.Contains(message, "/usr/lib/postgresql/17/bin") {
		t.Errorf("the message %q does not say what is missing", message)
	}
	s.patch("shop", `{"image":null}`)
	s.ready("shop")
}

// An image that can't be had.
func TestImageThatIsNotThere(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 1, "image: localhost/no-such-image:17"))
	message := s.condition("shop", v1.ConditionReady, "False", v1.ReasonImageUnusable)
	if !strings.Contains(message, "no-such-image") {
		t.Errorf("the message %q does not name the image", message)
	}
}
