package series

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// described is the text of a prometheus.Desc, which has no accessors.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

var constLabel = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="`)

// Described lists the families that a registry describes, by name, without types and units, and
// without the series of client_golang's own collectors.
func Described(r *prometheus.Registry) ([]Series, error) {
	descs := make(chan *prometheus.Desc)
	go func() { defer close(descs); r.Describe(descs) }()
	byName := map[string]Series{}
	var failed error
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			failed = fmt.Errorf("%s: not in the form that is known", d)
			continue
		}
		name, err := strconv.Unquote(m[1])
		if err != nil {
			failed = err
			continue
		}
		if !strings.HasPrefix(name, "muster_") {
			continue
		}
		s := Series{Name: name}
		if s.Meaning, err = strconv.Unquote(m[2]); err != nil {
			failed = err
		}
		for _, label := range constLabel.FindAllStringSubmatch(m[3], -1) {
			s.Labels = append(s.Labels, label[1])
		}
		for label := range strings.SplitSeq(m[4], ",") {
			if label != "" {
				s.Labels = append(s.Labels, label)
			}
		}
		slices.Sort(s.Labels)
		byName[name] = s
	}
	all := make([]Series, 0, len(byName))
	for _, s := range byName {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Series) int { return strings.Compare(a.Name, b.Name) })
	return all, failed
}
