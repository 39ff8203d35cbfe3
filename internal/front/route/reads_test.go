package route

import (
	"slices"
	"testing"

	"toban.dev/internal/protocol"
)

func TestWhereClientsGoThatOnlyRead(t *testing.T) {
	leads := protocol.InstanceTells{Name: "x-0", Address: "10.0.0.1", Leads: true, Term: 4}
	stops := leads
	stops.HandOver = "soon"
	reads := protocol.InstanceTells{Name: "x-1", Address: "10.0.0.2", Reads: true, Term: 4}
	other := protocol.InstanceTells{Name: "x-2", Address: "10.0.0.3", Reads: true, Term: 4}
	nameless := protocol.InstanceTells{Name: "x-3", Reads: true, Term: 4}
	idle := protocol.InstanceTells{Name: "x-1", Address: "10.0.0.2", Term: 4}
	const serve = StandbysServe
	const first, second = "x-1", "x-2"
	former := Route{Instance: "x-9", Address: "10.0.0.9", Term: 3}
	tells := func(all ...protocol.InstanceTells) []protocol.InstanceTells { return all }
	for name, c := range map[string]struct {
		now             Route
		told, preferred []protocol.InstanceTells
		reason          Reason
		want            []string
	}{
		"nobody has said anything":     {Route{}, nil, nil, NoLeader, nil},
		"the standbys":                 {Route{}, tells(other, leads, reads), nil, serve, []string{first, second}},
		"readers before others":        {Route{}, tells(leads, reads), tells(other), serve, []string{second}},
		"readers that serve nobody":    {Route{}, tells(leads, reads), tells(nameless), serve, []string{first}},
		"no standby, and a leader":     {former, tells(leads, idle), nil, LeaderKnown, []string{"x-0"}},
		"no standby, and nobody leads": {former, tells(idle), nil, NoLeader, []string{"x-9"}},
		"a leader that stops":          {Route{}, tells(stops), nil, HandOver, []string{"x-0"}},
		"standbys of one that stops":   {Route{}, tells(stops, reads), nil, serve, []string{first}},
		"standbys while nobody leads":  {former, tells(reads), nil, serve, []string{first}},
		"one whose address is unknown": {Route{}, tells(nameless, leads), nil, LeaderKnown, []string{"x-0"}},
		"one that is no standby yet":   {Route{}, tells(idle, leads, other), nil, serve, []string{second}},
	} {
		t.Run(name, func(t *testing.T) {
			d, to := DecideReads(c.now, c.told, c.preferred)
			var got []string
			for _, r := range to {
				got = append(got, r.Instance)
			}
			if d.Reason != c.reason || !slices.Equal(got, c.want) {
				t.Errorf("it decides %s, %v, want %s, %v", d.Reason, got, c.reason, c.want)
			}
		})
	}
	if d, _ := DecideReads(Route{}, tells(stops, reads), nil); d.HandOver != "soon" || !d.Open() {
		t.Errorf("the hand-over of the leader is not known, for which nobody has to be waited: %+v", d)
	}
}
