//go:build e2e

package e2e

import (
	"context"
	"fmt"
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

// An image that can't be had, and then one without PostgreSQL in it, such as the operator's own.
func TestUnusableImages(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 1, "image: localhost/no-such-image:17"))
	s.unusable("shop", "no-such-image")
	image, err := outside.Namespace("toban-system").Kubectl(s.ctx, "get", "deployment", "toban-operator",
		"-o", "jsonpath={.spec.template.spec.containers[0].image}")
	must(t, err)
	s.patch("shop", `{"image":"`+image+`"}`)
	s.unusable("shop", "/usr/lib/postgresql/17/bin")
	s.patch("shop", `{"image":null}`)
	s.ready("shop")
}

// unusable waits until the condition Ready says of an image that it is, with certain words.
func (s *story) unusable(name, words string) {
	s.Helper()
	s.until(func(context.Context) error {
		if message := s.condition(name, v1.ConditionReady, "False", v1.ReasonImageUnusable); !strings.Contains(message,
			words) {
			return fmt.Errorf("the message %q does not say %s", message, words)
		}
		return nil
	})
}
