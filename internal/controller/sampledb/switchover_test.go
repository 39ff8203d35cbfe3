package sampledb

import "testing"

func TestNextStepOfASwitchover(t *testing.T) {
	three := []string{"x-0", "x-1", "x-2"}
	for name, c := range map[string]struct {
		request request
		want    step
	}{
		"nobody asks":                                {request{primary: "x-0", members: three}, stepNone},
		"nobody asks any more":                       {request{from: "x-0", primary: "x-0", members: three}, stepForget},
		"to one that is not there":                   {request{to: "x-3", primary: "x-0", members: three}, stepRefuse},
		"to one of another SampleDB":                 {request{to: "y-1", primary: "x-0", members: three}, stepRefuse},
		"there is only one":                          {request{to: "any", primary: "x-0", members: three[:1]}, stepRefuse},
		"to the only one":                            {request{to: "x-0", primary: "x-0", members: three[:1]}, stepRefuse},
		"nobody takes writes":                        {request{to: "x-1", members: three}, stepWait},
		"nobody takes writes any more":               {request{to: "any", from: "x-0", members: three}, stepWait},
		"a named one, for the first time":            {request{to: "x-1", primary: "x-0", members: three}, stepAsk},
		"a named one, once more":                     {request{to: "x-1", from: "x-0", primary: "x-0", members: three}, stepAsk},
		"a named one leads":                          {request{to: "x-1", from: "x-0", primary: "x-1", members: three}, stepDone},
		"a named one leads already":                  {request{to: "x-1", primary: "x-1", members: three}, stepDone},
		"a third one leads: it is asked":             {request{to: "x-1", from: "x-0", primary: "x-2", members: three}, stepAsk},
		"a third one that has refused before":        {request{to: "x-1", from: "x-0", primary: "x-2", refusal: "no", members: three}, stepAsk},
		"any, for the first time":                    {request{to: "any", primary: "x-0", members: three}, stepAsk},
		"any, once more":                             {request{to: "any", from: "x-0", primary: "x-0", members: three}, stepAsk},
		"any, and another one leads":                 {request{to: "any", from: "x-0", primary: "x-2", members: three}, stepDone},
		"the one that was asked can't":               {request{to: "x-1", from: "x-0", primary: "x-0", refusal: "no", members: three}, stepRefuse},
		"it could not another time, and not now":     {request{to: "x-1", primary: "x-0", refusal: "no", members: three}, stepAsk},
		"a named one leads, though it was called no": {request{to: "x-1", from: "x-1", primary: "x-1", refusal: "no", members: three}, stepDone},
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
