package doctor

import (
	"fmt"
	"strings"
	"time"
)

// judgeLevel judges the feature level.
func (f Facts) judgeLevel(time.Time) (list []Finding) {
	l := f.level
	if l == nil {
		return nil
	}
	for _, b := range l.Behind {
		if b.Level < l.Level {
			list = append(list, Finding{
				Error, checkVersions, b.Name, fmt.Sprintf("the %s knows feature levels up to %d, and the cluster has %d", strings.ToLower(b.Kind), b.Level, l.Level),
				"on its host: install the release of the coordinators and restart",
			})
		}
	}
	if l.Level < l.Newest && len(l.Behind) == 0 {
		list = append(list, Finding{
			Note, checkVersions, "feature level", fmt.Sprintf("the level is %d, and all coordinators and agents know %d", l.Level, l.Newest), "muster cluster level --raise, once the older version is not to come back",
		})
	}
	return list
}
