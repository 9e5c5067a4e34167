package deviceplugin

import (
	"slices"
	"time"
)

// loans decides when a lent device may be returned. The kubelet does not say when a
// container has ended: a device is returned once it is absent from two lists of the
// PodResources API, at least a given time apart, both begun after the device was
// allocated last, and both of the same start of the kubelet. A list that failed counts
// for nothing.
type loans struct {
	apart time.Duration
	// began is when the plugin started: what was lent before is taken as allocated then.
	began   time.Time
	devices map[string]*loan
}

type loan struct {
	allocated time.Time
	// absent is when the first list of the present row of lists without the device
	// began; zero where the last list had the device. kubelet is the start of the
	// kubelet that the row is of.
	absent  time.Time
	kubelet string
}

func newLoans(apart time.Duration, began time.Time) *loans {
	return &loans{apart: apart, began: began, devices: map[string]*loan{}}
}

// allocated notes that devices are about to be given to a container.
func (l *loans) allocated(uuids []string, now time.Time) {
	for _, uuid := range uuids {
		l.devices[uuid] = &loan{allocated: now}
	}
}

// listed takes a list that began at a time and has the devices of containers. It
// returns the lent devices that may be returned, ascending.
func (l *loans) listed(began time.Time, kubelet string, has map[string]bool, lent []string) (free []string) {
	for uuid := range l.devices {
		if !slices.Contains(lent, uuid) {
			delete(l.devices, uuid)
		}
	}
	for _, uuid := range lent {
		d := l.devices[uuid]
		if d == nil {
			d = &loan{allocated: l.began}
			l.devices[uuid] = d
		}
		switch {
		case !began.After(d.allocated): // the list may be older than the container
		case has[uuid]:
			d.absent = time.Time{}
		case d.absent.IsZero() || d.kubelet != kubelet:
			d.absent, d.kubelet = began, kubelet
		case began.Sub(d.absent) >= l.apart:
			free = append(free, uuid)
		}
	}
	slices.Sort(free)
	return free
}
