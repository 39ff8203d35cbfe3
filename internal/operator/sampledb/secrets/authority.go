package secrets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/pki"
)

// authorityTopic rotates the certificate authority.
type authorityTopic struct {
	base
	AuthoritySeen    bool
	AuthorityRotated world.Verdict
	AuthorityNext    time.Time
	// Roots are the operator's root secrets that the SampleDB needs, none for the first one alone; RootReplaced is the
	// condition, where there are several.
	Roots        []string
	RootReplaced world.Verdict
}

// patienceMounts is how long the kubelet may take to bring a changed ConfigMap or Secret to those Pods that can't be
// asked, such as that of a backup. It is how long a step lasts at least.
const patienceMounts = 2 * time.Minute

// longestOverlap bounds what may be asked for.
const longestOverlap = 365 * 24 * time.Hour

// authorityChange is what a decision about another authority is made of (docs/trust.md, "The authority").
type authorityChange struct {
	// asked says that a user asks for another one, wrong why what was asked for can't be understood.
	asked bool
	wrong string
	// starting says that the init Job has not done its work, restoring that a restore in place is under way.
	starting, restoring bool
	// oldest, issuer and epoch are those of credentials.Authorities.
	oldest, issuer, epoch int64
	// app says that NAME-app has the authorities that are trusted, secret that NAME-ca has the one that issues.
	app, secret bool
	// away are the instances that could not be asked, mute those that do not say what they trust, behind those that
	// trust or show something else than they are to.
	away, mute, behind []string
	// settled says that all instances had done what the present step asks; until is when that has lasted for long
	// enough, "" where it has.
	settled bool
	until   string
}

// authorityStep is the whole of what a reconcile does about an authority.
type authorityStep string

const (
	authorityNone  authorityStep = "none"
	authorityWait  authorityStep = "wait"  // nothing can be done now
	authorityBegin authorityStep = "begin" // another one is trusted besides
	authorityIssue authorityStep = "issue" // it issues the certificates
	authorityDrop  authorityStep = "drop"  // the former one is not trusted any more
)

// next is what to do, and for authorityWait why nothing can be. Each step begins when everybody has done the one
// before: nobody is shown a certificate of an authority that it does not trust.
func (q authorityChange) next() (step authorityStep, reason, sentence string) {
	missing := q.missing()
	switch {
	case q.oldest < q.epoch && q.issuer < q.epoch:
		return q.after(missing, v1.ReasonTrustingBoth, authorityIssue)
	case q.oldest < q.epoch && !q.secret:
		return authorityWait, v1.ReasonWritingAuthority, missing
	case q.oldest < q.epoch:
		return q.after(missing, v1.ReasonReissuing, authorityDrop)
	case q.epoch > 0 && !q.settled && missing != "":
		return authorityWait, v1.ReasonDroppingFormer, missing
	case !q.asked:
		return authorityNone, "", ""
	case q.wrong != "":
		return authorityWait, v1.ReasonAuthorityWaits, q.wrong
	case q.starting:
		return authorityWait, v1.ReasonAuthorityWaits, "waits for the init Job to have done its work"
	case q.restoring:
		return authorityWait, v1.ReasonAuthorityWaits, "waits for the end of the restore in place"
	case missing != "":
		return authorityWait, v1.ReasonAuthorityWaits, missing
	}
	return authorityBegin, "", ""
}

// after is a step where nothing is missing, and the one before has lasted for long enough.
func (q authorityChange) after(missing, reason string, step authorityStep) (authorityStep, string, string) {
	switch {
	case missing != "":
		return authorityWait, reason, missing
	case q.until != "" && step == authorityIssue:
		return authorityWait, reason, fmt.Sprintf("from %s on, the servers show certificates of the new authority: "+
			"until then, applications that read ca.crt of NAME-app only when they start have time to start again",
			q.until)
	case q.until != "":
		return authorityWait, reason, fmt.Sprintf(
			"every instance uses the new authority; the former one is trusted until %s", q.until)
	}
	return step, "", ""
}

// missing is what has not been done yet of what the present step asks, "" where all has.
func (q authorityChange) missing() string {
	const anew = "; if that takes longer than some minutes, delete that Pod, so that it is made anew"
	switch {
	case !q.secret:
		return "waits for the former Secret NAME-ca to go; if that takes longer than a minute, delete it"
	case !q.app:
		return "waits for the former Secret NAME-app to go; if that takes longer than a minute, delete it"
	case len(q.away) > 0:
		return "waits for " + strings.Join(q.away, ", ") + " to be there"
	case len(q.mute) > 0:
		return "waits for " + strings.Join(q.mute, ", ") + " to say which authorities are trusted there, which an " +
			"agent of an earlier release can't" + anew
	case len(q.behind) > 0:
		return "waits for " + strings.Join(q.behind, ", ") + " to use what is there" + anew
	}
	return ""
}

// ObserveAuthority takes over which authorities count. The bundle (PEM) is what the agents were given last.
func (s *authorityTopic) ObserveAuthority(bundle string) error {
	if known := s.DB.Status.Authority; known != nil {
		s.Authority = *known.DeepCopy()
	}
	count, err := s.Credentials.AuthoritiesOf(s.DB, bundle)
	if err != nil {
		return err
	}
	s.count(count)
	return nil
}

// count puts on record which authorities count. What was waited for before another step counts for nothing.
func (s *authorityTopic) count(now credentials.Authorities) {
	a := &s.Authority
	if a.Oldest != now.Oldest || a.Issuer != now.Issuer || a.Epoch != now.Epoch {
		a.Since = nil
	}
	a.Oldest, a.Issuer, a.Epoch = now.Oldest, now.Issuer, now.Epoch
	a.OverlapSeconds = int64(now.Overlap / time.Second)
}

// authoritySecretsWritten says that NAME-ca and NAME-app are known to have the authorities that count.
func (s *authorityTopic) authoritySecretsWritten() (secret, app bool) {
	return s.Authority.Secret == s.Authority.Issuer,
		!desired.Initialises(s.DB) || s.AppWritten()
}

// authorityChange is what the scope knows of it.
func (s *authorityTopic) authorityChange() (authorityChange, error) {
	a := s.Authority
	q := authorityChange{
		starting: s.Starting(), restoring: s.RestoreWanted(),
		oldest: a.Oldest, issuer: a.Issuer, epoch: a.Epoch, settled: a.Since != nil,
	}
	q.secret, q.app = s.authoritySecretsWritten()
	if text := s.Asked(world.RequestRotateAuthority); text != "" {
		q.asked = true
		_, q.wrong = overlapOf(text)
	}
	issuer, err := s.Credentials.Authority(s.DB, a.Issuer)
	if err != nil {
		return q, fmt.Errorf("make the authority: %w", err)
	}
	for _, name := range s.everyInstance() {
		answer, known := s.Seen.Answers[name]
		switch {
		case !known:
			q.away = append(q.away, name)
		case answer.Identity == nil:
			q.mute = append(q.mute, name)
		case answer.Identity.Issuer != issuer.ID() ||
			!slices.Equal(answer.Identity.Trusted, pki.KeyIDs(s.Config.Authority)):
			q.behind = append(q.behind, name)
		}
	}
	return q, nil
}

// overlapOf reads what was asked for.
func overlapOf(text string) (overlap time.Duration, wrong string) {
	overlap, err := time.ParseDuration(text)
	if err != nil || overlap < 0 || overlap > longestOverlap {
		return 0, fmt.Sprintf("the annotation %s is %q: it must be for how long both authorities are to be trusted, "+
			"such as 24h, or 0s where the former one is not to be trusted for longer than it takes",
			world.RequestRotateAuthority, text)
	}
	return overlap, ""
}

// everyInstance is those that are wanted, and those that are there.
func (s *authorityTopic) everyInstance() []string {
	var out []string
	for _, i := range slices.Sorted(maps.Keys(s.Ordinals())) {
		out = append(out, naming.Instance(s.DB.Name, i))
	}
	return out
}

// ApplyAuthority does the next step of a rotation of the authority.
func (s *authorityTopic) ApplyAuthority(ctx context.Context) error {
	q, err := s.authorityChange()
	if err != nil {
		return err
	}
	s.AuthoritySeen = true
	if s.Authority.Epoch > 0 && s.Authority.Since == nil && q.missing() == "" {
		since := metav1.NewTime(s.Now).Rfc3339Copy()
		s.Authority.Since = &since
	}
	q.settled = s.Authority.Since != nil
	if end := s.authorityUntil(); s.Now.Before(end) {
		q.until, s.AuthorityNext = end.UTC().Format(time.RFC3339), end
	}
	step, reason, sentence := q.next()
	s.AuthorityWaits = step == authorityWait && q.until != "" && q.missing() == ""
	if reason == "" {
		if reason, sentence, err = s.advanceAuthority(ctx, step); err != nil {
			return err
		}
	}
	switch sentence = strings.ReplaceAll(sentence, "NAME", s.DB.Name); {
	case reason != "":
		s.AuthorityRotated = world.No(reason, sentence)
	case s.Authority.Epoch > 0:
		s.AuthorityRotated = world.Yes(v1.ReasonAuthorityReplaced,
			fmt.Sprintf("the authority of epoch %d is the only one that is used and trusted", s.Authority.Epoch))
	}
	return nil
}

// advanceAuthority does a step, and says what follows from it.
func (s *authorityTopic) advanceAuthority(
	ctx context.Context, step authorityStep,
) (reason, sentence string, err error) {
	count := s.Authorities()
	switch step {
	case authorityBegin:
		count.Overlap, _ = overlapOf(s.Asked(world.RequestRotateAuthority))
		count.Epoch = s.Credentials.Next(count.Epoch)
		reason, sentence = v1.ReasonTrustingBoth, "everybody is told to trust both authorities"
	case authorityIssue:
		count.Issuer = count.Epoch
		reason, sentence = v1.ReasonWritingAuthority, "the Secret NAME-ca is replaced"
	case authorityDrop:
		count.Oldest = count.Epoch
		reason, sentence = v1.ReasonDroppingFormer, "everybody is told to trust the new authority alone"
	case authorityNone, authorityWait:
	}
	return reason, sentence, s.countAuthorities(ctx, count, step == authorityBegin)
}

// countAuthorities puts on record which authorities count from now on, where others do; for a new one it takes the
// request away with the same write: it is begun once, whatever fails afterwards.
func (s *authorityTopic) countAuthorities(ctx context.Context, now credentials.Authorities, begun bool) error {
	if now == s.Authorities() {
		return nil
	}
	record := map[string]string{naming.AnnotationAuthority: s.Credentials.AuthorityRecord(s.DB, now)}
	if begun {
		record[string(world.RequestRotateAuthority)] = ""
	}
	if err := s.Record(ctx, record); err != nil {
		return err
	}
	s.count(now)
	s.Attempts.Forget(s.DB.UID) // the Secrets are tried at once
	return nil
}

// authorityUntil is when the present step has taken its time, zero where none is under way that does, or not all have
// done it yet.
func (s *authorityTopic) authorityUntil() time.Time {
	a := s.Authority
	if a.Since == nil || a.Oldest == a.Epoch {
		return time.Time{}
	}
	return a.Since.Add(max(s.Authorities().Overlap, patienceMounts))
}

// AuthorityStatus is nil as long as the authority is the first one.
func (s *authorityTopic) AuthorityStatus() *v1.AuthorityStatus {
	if s.Authority.Epoch == 0 {
		return nil
	}
	return s.Authority.DeepCopy()
}
