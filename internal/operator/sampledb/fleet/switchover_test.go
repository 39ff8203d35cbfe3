package fleet

import (
	"testing"
)

func TestNextStepOfASwitchover(t *testing.T) {
	three := []string{"x-0", "x-1", "x-2"}
	for name, c := range map[string]struct {
		request request
		want    step
	}{
		"nobody asks": {request{primary: "x-0", members: three}, stepNone},
		"nobody asks any more": {
			request{from: "x-0", fromTerm: 4, primary: "x-0", term: 4, members: three}, stepForget,
		},
		"to one that is not there":        {request{to: "x-3", primary: "x-0", members: three}, stepRefuse},
		"to one of another SampleDB":      {request{to: "y-1", primary: "x-0", members: three}, stepRefuse},
		"there is only one":               {request{to: "any", primary: "x-0", members: three[:1]}, stepRefuse},
		"to the only one":                 {request{to: "x-0", primary: "x-0", members: three[:1]}, stepRefuse},
		"nobody takes writes":             {request{to: "x-1", members: three}, stepWait},
		"nobody takes writes any more":    {request{to: "any", from: "x-0", fromTerm: 4, members: three}, stepWait},
		"a named one, for the first time": {request{to: "x-1", primary: "x-0", term: 4, members: three}, stepAsk},
		"a named one, once more": {
			request{to: "x-1", from: "x-0", fromTerm: 4, primary: "x-0", term: 4, members: three}, stepAsk,
		},
		"a named one leads": {
			request{to: "x-1", from: "x-0", fromTerm: 4, primary: "x-1", term: 5, members: three}, stepDone,
		},
		"a named one leads already": {request{to: "x-1", primary: "x-1", term: 4, members: three}, stepDone},
		"a third one was elected": {
			request{to: "x-1", from: "x-0", fromTerm: 4, primary: "x-2", term: 5, members: three}, stepRefuse,
		},
		"the one that was asked was elected": {
			request{to: "x-1", from: "x-0", fromTerm: 4, primary: "x-0", term: 5, members: three}, stepRefuse,
		},
		"any, for the first time": {request{to: "any", primary: "x-0", term: 4, members: three}, stepAsk},
		"any, once more": {
			request{to: "any", from: "x-0", fromTerm: 4, primary: "x-0", term: 4, members: three}, stepAsk,
		},
		"any, and another one leads": {
			request{to: "any", from: "x-0", fromTerm: 4, primary: "x-2", term: 5, members: three}, stepDone,
		},
		"any, and the one that was asked leads": {
			request{to: "any", from: "x-0", fromTerm: 4, primary: "x-0", term: 5, members: three}, stepRefuse,
		},
		"a former one claims to lead once more": {
			request{to: "any", from: "x-1", fromTerm: 5, primary: "x-1", term: 4, members: three}, stepAsk,
		},
		"what was noted is of no use: ask again": {
			request{to: "any", from: "", primary: "x-1", term: 4, members: three}, stepAsk,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, sentence := c.request.next()
			if got != c.want {
				t.Errorf("%s (%s), want %s", got, sentence, c.want)
			}
			if (got == stepRefuse) != (sentence != "") {
				t.Errorf("%s says %q", got, sentence)
			}
		})
	}
}

func TestWhoWasAskedIsReadBackAsWritten(t *testing.T) {
	if from, term := parseAsked(formatAsked("x-0", 17)); from != "x-0" || term != 17 {
		t.Errorf("it is read as %s of term %d", from, term)
	}
	for _, broken := range []string{"", "x-0", "x-0/", "x-0/-1", "x-0/soon"} {
		if from, term := parseAsked(broken); from != "" || term != 0 {
			t.Errorf("%q is read as %s of term %d", broken, from, term)
		}
	}
}
