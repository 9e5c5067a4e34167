package events

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Happening is an event without its object.
type Happening struct {
	// Type is api.EventNormal or api.EventWarning.
	Type            string
	Reason, Message string
	// At is the instant by the object, RFC 3339; "" where the object has none.
	At string
	// Latest: an earlier event of the same type and reason is counted again and takes
	// this message over. Else events with different messages are different events.
	Latest bool
}

// instant is the time of a happening: now where the object has no instant, or one in
// the future.
func (h *Happening) instant(now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339, h.At); err == nil && at.Before(now) {
		return at
	}
	return now
}

// normal makes a happening of type Normal.
func normal(reason, at, format string, args ...any) Happening {
	return Happening{Type: api.EventNormal, Reason: reason, Message: fmt.Sprintf(format, args...), At: at}
}

// warning makes a happening of type Warning.
func warning(reason, at, format string, args ...any) Happening {
	return Happening{Type: api.EventWarning, Reason: reason, Message: fmt.Sprintf(format, args...), At: at}
}

// latest sets Latest.
func (h Happening) latest() Happening {
	h.Latest = true
	return h
}

// conditionOf finds a condition; the zero value where there is none.
func conditionOf(conditions []api.Condition, kind string) api.Condition {
	if i := slices.IndexFunc(conditions, func(c api.Condition) bool { return c.Type == kind }); i >= 0 {
		return conditions[i]
	}
	return api.Condition{}
}

// amounts lists quantities by the names of their resources.
func amounts(all map[resource.Name]string) string {
	parts := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, string(name)+" "+all[name])
	}
	return strings.Join(parts, ", ")
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
