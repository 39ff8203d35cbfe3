package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
)

// gauge is a metric of objects of a kind. Its labels are namespace, the kind's, whose value is the object's name, and
// more.
type gauge struct {
	desc *prometheus.Desc
	kind string
	more []string
}

// newGauge makes one of SampleDBs.
func newGauge(name, help string, more ...string) *gauge {
	return gaugeOf(labelSampleDB, name, help, more...)
}

// gaugeOf makes one of the kind with this label.
func gaugeOf(kind, name, help string, more ...string) *gauge {
	return &gauge{prometheus.NewDesc(name, help, append([]string{labelNamespace, kind}, more...), nil), kind, more}
}

// series is one that is shown of an object, with the values of what more labels its metric has.
type series struct {
	of    *gauge
	more  [2]string
	value float64
}

func (g *gauge) is(value float64, more ...string) series {
	s := series{of: g, value: value}
	copy(s.more[:], more)
	return s
}

// shown is what is shown of a SampleDB: of its status, of its volumes, and of the WAL that it keeps. These lists are
// replaced and never changed. There are some sixty series of each SampleDB, so they take their place in memory as what
// a scrape reads only while one reads it.
type shown struct{ status, volumes, kept []series }

// Describe tells which metrics of SampleDBs there are.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, g := range m.gauges() {
		out <- g.desc
	}
}

// Collect tells what is shown now.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	pairs := labelPairs{}
	for of, s := range m.now() {
		for _, list := range [][]series{s.status, s.volumes, s.kept} {
			pairs.show(out, of, list)
		}
	}
}

// now is what is shown of all SampleDBs at this moment.
func (m *Metrics) now() map[types.NamespacedName]shown {
	m.lock.Lock()
	defer m.lock.Unlock()
	out := make(map[types.NamespacedName]shown, len(m.shown))
	for of, s := range m.shown {
		out[of] = *s
	}
	return out
}

// change changes what is shown of a SampleDB.
func (m *Metrics) change(namespace, name string, change func(*shown)) {
	m.lock.Lock()
	defer m.lock.Unlock()
	of := types.NamespacedName{Namespace: namespace, Name: name}
	if m.shown[of] == nil {
		m.shown[of] = &shown{}
	}
	change(m.shown[of])
}

// labelPairs are labels with their values. All series of a scrape share them.
type labelPairs map[[2]string]*dto.LabelPair

// show sends what is shown of an object to a scrape.
func (p labelPairs) show(out chan<- prometheus.Metric, of types.NamespacedName, all []series) {
	for _, one := range all {
		out <- &sample{one.of.desc, p.of(of, one), one.value}
	}
}

// of are the labels of a series of an object, in the order of their names.
func (p labelPairs) of(object types.NamespacedName, s series) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, 2+len(s.of.more))
	out = append(out, p.pair(labelNamespace, object.Namespace), p.pair(s.of.kind, object.Name))
	for i, label := range s.of.more {
		out = append(out, p.pair(label, s.more[i]))
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

func (p labelPairs) pair(name, value string) *dto.LabelPair {
	key := [2]string{name, value}
	if p[key] == nil {
		p[key] = &dto.LabelPair{Name: &name, Value: &value}
	}
	return p[key]
}

// sample is the value of a series, for one scrape.
type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc is that of its metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write gives it to the scrape.
func (s *sample) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}
