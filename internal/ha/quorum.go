package ha

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Voter is one hard state of one instance, as "db-1.9f3a6c21": an instance that
// lost its volume comes back as another voter, because it has forgotten what it
// promised.
type Voter string

// NewVoter names the voter of an instance with a hard state's identity.
func NewVoter(instance, identity string) Voter { return Voter(instance + "." + identity) }

// Instance is the instance that the voter is a hard state of.
func (v Voter) Instance() string {
	if i := strings.LastIndexByte(string(v), '.'); i >= 0 {
		return string(v)[:i]
	}
	return string(v)
}

// FollowerName is the application_name of a voter's server while it follows the leader of a term. The term is in it,
// because a WAL receiver that has lost its connection makes another by itself: it may reach the same leader in a later
// term, of which its own agent does not know yet. What it acknowledged then would count, and its position would say
// that the WAL is of the term before.
func FollowerName(v Voter, term uint64) string { return string(v) + "@" + strconv.FormatUint(term, 10) }

// Follower is the voter whose server has an application_name, and whether that follows in a term. One without a term is
// that of release 0.1.0.
func Follower(name string, term uint64) (v Voter, follows bool) {
	voter, of, named := strings.Cut(name, "@")
	return Voter(voter), !named || of == strconv.FormatUint(term, 10)
}

// Quorum says who has a say: whose disks hold an acknowledged commit and whose
// votes make a leader.
type Quorum struct {
	// Voters have the data.
	Voters []Voter `json:"voters"`
	// Witness is a voter without data, the identity of a Kubernetes object, or empty.
	Witness string `json:"witness,omitempty"`
	// Acknowledgements is how many voters, the primary included, must have a
	// commit on disk before the client is told.
	Acknowledgements int `json:"acknowledgements"`
}

// Votes is how many votes make a leader: a majority, the witness counted.
func (q Quorum) Votes() int {
	size := len(q.Voters)
	if q.Witness != "" {
		size++
	}
	return size/2 + 1
}

// Elects says whether these votes are enough.
func (q Quorum) Elects(votes map[Voter]bool, witness bool) bool {
	n := 0
	for _, v := range q.Voters {
		if votes[v] {
			n++
		}
	}
	if witness && q.Witness != "" {
		n++
	}
	return n >= q.Votes()
}

// Has says whether v is one of the voters.
func (q Quorum) Has(v Voter) bool { return slices.Contains(q.Voters, v) }

// Equal says whether two quorums are the same.
func (q Quorum) Equal(o Quorum) bool {
	return slices.Equal(q.Voters, o.Voters) && q.Witness == o.Witness && q.Acknowledgements == o.Acknowledgements
}

func (q Quorum) String() string {
	var names []string
	for _, v := range q.Voters {
		names = append(names, v.Instance())
	}
	if q.Witness != "" {
		names = append(names, "the Kubernetes API")
	}
	return strings.Join(names, ", ")
}

// Configuration is the quorum in force as its leader has recorded it, and while it is
// being changed also the one to come. Configurations are ordered by term, then version.
type Configuration struct {
	Term    uint64  `json:"term"`
	Version uint64  `json:"version"`
	Now     Quorum  `json:"now"`
	Next    *Quorum `json:"next,omitempty"`
}

// Newer says whether r replaces o.
func (r Configuration) Newer(o Configuration) bool {
	return r.Term > o.Term || r.Term == o.Term && r.Version > o.Version
}

// Quorums are those that a decision under this configuration must satisfy: both, while
// it is being changed.
func (r Configuration) Quorums() []Quorum {
	if r.Next == nil {
		return []Quorum{r.Now}
	}
	return []Quorum{r.Now, *r.Next}
}

// Elects says whether these votes are enough in every quorum of the configuration.
func (r Configuration) Elects(votes map[Voter]bool, witness bool) bool {
	for _, q := range r.Quorums() {
		if !q.Elects(votes, witness) {
			return false
		}
	}
	return r.Version > 0
}

// Has says whether v is a voter in every quorum of the configuration: only such a one may lead.
func (r Configuration) Has(v Voter) bool {
	for _, q := range r.Quorums() {
		if !q.Has(v) {
			return false
		}
	}
	return r.Version > 0
}

// Voters are those of all quorums, each once.
func (r Configuration) Voters() []Voter {
	var all []Voter
	for _, q := range r.Quorums() {
		for _, v := range q.Voters {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// Witnesses says whether the witness has a vote.
func (r Configuration) Witnesses(uid string) bool {
	return slices.ContainsFunc(r.Quorums(), func(q Quorum) bool { return uid != "" && q.Witness == uid })
}

// Rule is what a primary demands of its standbys before it acknowledges a
// commit: any Count of From, as far as they follow in Term. Nobody is a rule that nobody can meet.
type Rule struct {
	Count int
	From  []Voter
	Term  uint64
}

// Nobody stands in a rule of one who may not acknowledge anything.
const Nobody Voter = "nobody"

// String is the value of synchronous_standby_names (PostgreSQL 17 documentation, 19.6.2). It has each voter's
// FollowerName, and the name that its server has where its agent is of release 0.1.0. A voter counts once nevertheless:
// its replication slot can't be used by two at a time.
func (r Rule) String() string {
	if r.Count == 0 {
		return ""
	}
	var quoted []string
	for _, v := range r.From {
		name := Voter(strings.ReplaceAll(string(v), `"`, ``))
		if v != Nobody {
			quoted = append(quoted, `"`+FollowerName(name, r.Term)+`"`)
		}
		quoted = append(quoted, `"`+string(name)+`"`)
	}
	return fmt.Sprintf("ANY %d (%s)", r.Count, strings.Join(quoted, ","))
}

// IsMetBy says whether a commit is acknowledged that these standbys have on disk.
func (r Rule) IsMetBy(standbys []Voter) bool {
	n := 0
	for _, v := range r.From {
		if slices.Contains(standbys, v) {
			n++
		}
	}
	return n >= r.Count
}

// CommitRule is the weakest rule of the form "any k of these" under which each
// commit of leader meets every quorum of the configuration, for a change of one voter at a
// time. Who may not lead by the configuration may not acknowledge.
func CommitRule(r Configuration, leader Voter) Rule {
	if !r.Has(leader) {
		return Rule{Count: 1, From: []Voter{Nobody}}
	}
	var best *Rule
	for _, from := range candidateLists(r, leader) {
		count, ok := smallestCount(r, from)
		if ok && (best == nil || count < best.Count || count == best.Count && len(from) > len(best.From)) {
			best = &Rule{Count: count, From: from}
		}
	}
	if best == nil {
		return Rule{Count: 1, From: []Voter{Nobody}}
	}
	if best.Count == 0 {
		best.From = nil
	}
	return *best
}

// candidateLists are the sets of standbys that a rule may be made over: those of
// each quorum, their intersection and their union.
func candidateLists(r Configuration, leader Voter) [][]Voter {
	others := func(all []Voter) []Voter {
		return slices.DeleteFunc(slices.Clone(all), func(v Voter) bool { return v == leader })
	}
	lists := [][]Voter{others(r.Voters())}
	for _, q := range r.Quorums() {
		lists = append(lists, others(q.Voters))
	}
	if r.Next != nil {
		lists = append(lists, slices.DeleteFunc(others(r.Now.Voters), func(v Voter) bool { return !r.Next.Has(v) }))
	}
	return lists
}

// smallestCount is the least k for which any k of from meet every quorum
// together with the leader.
func smallestCount(r Configuration, from []Voter) (int, bool) {
	for k := 0; k <= len(from); k++ {
		if !slices.ContainsFunc(r.Quorums(), func(q Quorum) bool { return surely(k, from, q) < q.Acknowledgements }) {
			return k, true
		}
	}
	return 0, false
}

// surely is how many voters of q have a commit at least, when the leader and any
// k of from have it.
func surely(k int, from []Voter, q Quorum) int {
	strangers := 0
	for _, v := range from {
		if !q.Has(v) {
			strangers++
		}
	}
	return 1 + max(0, k-strangers)
}
