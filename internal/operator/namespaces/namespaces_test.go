package namespaces

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

func TestTheOperatorWorksInTheNamespacesThatAreChosen(t *testing.T) {
	for name, c := range map[string]struct {
		choice           Choice
		shop, till, rest bool
		words            string
	}{
		"all":                 {Choice{}, true, true, true, "all"},
		"only one":            {Choice{Watched: []string{"shop"}}, true, false, false, "shop"},
		"only two":            {Choice{Watched: []string{"shop", "till"}}, true, true, false, "shop, till"},
		"all but one":         {Choice{Ignored: []string{"shop"}}, false, true, true, "all but shop"},
		"all but two of them": {Choice{Ignored: []string{"shop", "till"}}, false, false, true, "all but shop, till"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.choice.Has("shop") != c.shop || c.choice.Has("till") != c.till || c.choice.Has("rest") != c.rest {
				t.Errorf("it has %v, %v, %v", c.choice.Has("shop"), c.choice.Has("till"), c.choice.Has("rest"))
			}
			if err := c.choice.Check(); err != nil || c.choice.String() != c.words {
				t.Errorf("it is %q: %v", c.choice, err)
			}
		})
	}
}

func TestAChoiceThatCantBeIsRefused(t *testing.T) {
	for name, c := range map[string]Choice{
		"both":          {Watched: []string{"shop"}, Ignored: []string{"till"}},
		"an empty name": {Watched: []string{"shop", ""}},
		"a blank":       {Ignored: []string{"shop "}},
		"a pattern":     {Ignored: []string{"team-*"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.Check() == nil {
				t.Errorf("%+v is taken", c)
			}
		})
	}
}

func TestACacheAsksOnlyForWhatIsChosen(t *testing.T) {
	if got := (Choice{}).ForCache(); len(got) > 0 {
		t.Errorf("of all namespaces it has %v", got)
	}
	got := slices.Sorted(maps.Keys(Choice{Watched: []string{"shop", "till"}}.ForCache()))
	if !slices.Equal(got, []string{"shop", "till"}) {
		t.Errorf("of two namespaces it has %v", got)
	}
	selector := Choice{Ignored: []string{"shop", "till"}}.ForCache()[cache.AllNamespaces].FieldSelector
	for namespace, wanted := range map[string]bool{"shop": false, "till": false, "rest": true} {
		if selector.Matches(fields.Set{"metadata.namespace": namespace}) != wanted {
			t.Errorf("of %s it has the opposite of %v", namespace, wanted)
		}
	}
}
