package show

import "testing"

func TestASpanHasThreeDigitsThatCount(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "-", 0.0000123: "12µs", 0.01234: "12.3ms", 1.26: "1.3s", 3723: "1h2m3s",
	} {
		if got := Span(seconds); got != want {
			t.Errorf("%v is %s, want %s", seconds, got, want)
		}
	}
}
