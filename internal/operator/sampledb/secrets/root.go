package secrets

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// BeginsWith are the annotations that put on record with which epochs a new SampleDB begins, where that is not the
// first one: there is a later root. What it brings from a former SampleDB counts.
func (s *authorityTopic) BeginsWith() map[string]string {
	k, first := s.Credentials, s.Credentials.First()
	// One that has our finalizer was begun with, perhaps by an operator that ended right after. But nothing can be of
	// a root that is not there: then it was brought here with the finalizer on it.
	begun := controllerutil.ContainsFinalizer(s.DB, naming.Finalizer) && k.RootOf(0) != ""
	if first == 0 || begun || s.DB.Status.ObservedGeneration > 0 {
		return nil
	}
	out := map[string]string{}
	if desired.Initialises(s.DB) && !k.Recorded(s.DB) {
		out[naming.AnnotationCredentials] = k.Credentials(s.DB, first)
	}
	if s.Authority.Epoch == 0 {
		out[naming.AnnotationAuthority] = k.AuthorityRecord(s.DB,
			credentials.Authorities{Oldest: first, Issuer: first, Epoch: first})
	}
	return out
}

// TakeBeginning takes over what BeginsWith has put on record. There is no former authority that anybody trusts.
func (s *authorityTopic) TakeBeginning() error {
	s.All.ObservePassword()
	if err := s.ObserveAuthority(""); err != nil {
		return err
	}
	since := metav1.NewTime(s.Now.Truncate(time.Second))
	s.Authority.Since = &since
	return nil
}

// rootUse is what a verdict about the operator's root secrets is made of.
type rootUse struct {
	// held are all that the operator has, the oldest first.
	held []string
	// password is the root of the password, "" where there is none; authorities are those of the trusted ones.
	password    string
	authorities []string
	// operator are those whose authority agents are told to trust, the oldest first; behind are the instances that
	// are not known to have been told.
	operator, behind []string
}

// needed are the roots that must stay, the oldest first: those of which something is derived that is used, and as long
// as not every agent is known to trust the newer ones, the one of which the operator's certificate is.
func (u rootUse) needed() (out []string) {
	for i, name := range u.held {
		shown := len(u.operator) > 0 && name == u.operator[0] && len(u.behind) > 0
		only := shown || i == len(u.held)-1 && slices.Equal(u.operator, []string{name})
		if only || name == u.password || slices.Contains(u.authorities, name) {
			out = append(out, name)
		}
	}
	return out
}

// verdict says whether nothing needs a former root. There is none where the operator has only one.
func (u rootUse) verdict() world.Verdict {
	if len(u.held) < 2 {
		return world.Verdict{}
	}
	newest := u.held[len(u.held)-1]
	former := slices.DeleteFunc(u.needed(), func(name string) bool { return name == newest })
	if len(former) == 0 {
		return world.Yes(v1.ReasonNewestRoot, fmt.Sprintf("all is derived from the root %q", newest))
	}
	var why []string
	if u.password != "" && u.password != newest {
		why = append(why, "its password ("+string(world.RequestRotatePassword)+" replaces it)")
	}
	if slices.ContainsFunc(u.authorities, func(name string) bool { return name != newest }) {
		why = append(why, "its authority ("+string(world.RequestRotateAuthority)+" replaces it)")
	}
	if len(u.behind) > 0 {
		why = append(why, "what "+strings.Join(u.behind, ", ")+
			" knows of the operator (it is told when it can be asked)")
	}
	return world.No(v1.ReasonFormerRoot, fmt.Sprintf("needs the former root %s: for %s",
		strings.Join(former, " and "), strings.Join(why, ", and for ")))
}

// ObserveRoots finds out which of the operator's root secrets the SampleDB needs.
func (s *authorityTopic) ObserveRoots() {
	k, a := s.Credentials, s.Authority
	use := rootUse{held: k.Roots(), operator: k.Told(s.Config.Operator)}
	if desired.Initialises(s.DB) {
		use.password = k.RootOf(s.Password.Epoch)
	}
	for _, epoch := range []int64{a.Oldest, a.Issuer, a.Epoch} {
		use.authorities = append(use.authorities, k.RootOf(epoch))
	}
	for _, name := range s.everyInstance() {
		if answer, known := s.Seen.Answers[name]; !known || answer.ConfigRevision != s.Config.Revision {
			use.behind = append(use.behind, name)
		}
	}
	s.RootReplaced = use.verdict()
	if s.Roots = use.needed(); slices.Equal(s.Roots, []string{naming.KeyRoot}) {
		s.Roots = nil
	}
}
