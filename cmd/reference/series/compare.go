package series

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Compare returns the differences between a list and a registry: families that only
// one of them has, and names, labels, types and meanings that differ. Types are
// those of the series that the registry shows at this moment; a family without series
// has none to compare.
func Compare(want []Series, r *prometheus.Registry) ([]string, error) {
	got, err := Described(r)
	if err != nil {
		return nil, err
	}
	shown, err := r.Gather()
	if err != nil {
		return nil, err
	}
	types := map[string]string{}
	for _, family := range shown {
		types[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	listed := map[string]Series{}
	for _, s := range want {
		listed[s.Name] = s
	}
	var faults []string
	for _, is := range got {
		should, known := listed[is.Name]
		delete(listed, is.Name)
		switch {
		case !known:
			faults = append(faults, is.Name+": shown and not listed in cmd/reference/series")
		case is.Meaning != should.Meaning:
			faults = append(faults, fmt.Sprintf("%s: shown as %q, listed as %q", is.Name, is.Meaning, should.Meaning))
		case !slices.Equal(is.Labels, should.Labels):
			faults = append(faults, fmt.Sprintf("%s: has the labels %q, listed are %q", is.Name, is.Labels, should.Labels))
		case types[is.Name] != "" && types[is.Name] != should.Type:
			faults = append(faults, fmt.Sprintf("%s: is a %s, listed as a %s", is.Name, types[is.Name], should.Type))
		}
	}
	for name := range listed {
		faults = append(faults, name+": listed in cmd/reference/series and not shown")
	}
	slices.Sort(faults)
	return faults, nil
}
