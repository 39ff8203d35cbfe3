package kubernetes

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

// The pattern of a time takes the days that Go's package time takes, and no others.
func TestTimeHasTheDaysOfTheCalendar(t *testing.T) {
	pattern := regexp.MustCompile(Time)
	for _, year := range []int{1, 1900, 1999, 2000, 2023, 2024, 2026, 2100, 2400, 9996} {
		for month := range 14 {
			for day := range 33 {
				text := fmt.Sprintf("%04d-%02d-%02dT23:59:59.5+09:00", year, month, day)
				_, err := time.Parse(time.RFC3339, text)
				if got := pattern.MatchString(text); got != (err == nil) {
					t.Errorf("%s: %v, and Go says %v", text, got, err)
				}
			}
		}
	}
	for text, want := range map[string]bool{
		"2026-11-26T00:00:00Z": true, "2026-11-26T24:00:00Z": false, "2026-11-26T23:60:00Z": false,
		"2026-11-26T23:59:60Z": false, "2026-11-26t23:59:00z": false, "2026-11-26T23:59:00": false,
		"2026-11-26T23:59:00-23:59": true, "2026-11-26T23:59:00+24:00": false, "2026-11-26 23:59:00Z": false,
		"2026-11-26T23:59:00.123456789Z": true, "2026-11-26T23:59:00.Z": false, "": false,
	} {
		if pattern.MatchString(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
