package shown

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// deviceLost is the type of two conditions: an agent names in its message the
// devices that are gone while a grant holds them, and an allocation or a job
// that holds such a device shows it.
const deviceLost = "DeviceLost"

// LostMessage is the message of the condition DeviceLost, "" where it is not
// True.
func LostMessage(told []record.Condition) string {
	for _, c := range told {
		if c.Type == deviceLost && c.Status == "True" {
			return c.Message
		}
	}
	return ""
}

// ReportsLost reports whether the condition DeviceLost is True.
func ReportsLost(told []record.Condition) bool { return LostMessage(told) != "" }

// LostDevices are the devices of an assignment that its agent reports as lost,
// by UUID, in the order of the assignment.
func LostDevices(told []record.Condition, a resource.Assignment) []string {
	named := strings.FieldsFunc(LostMessage(told), func(r rune) bool { return r == ' ' || r == ';' })
	var lost []string
	for _, g := range a.GPUs {
		if slices.Contains(named, g.UUID) {
			lost = append(lost, g.UUID)
		}
	}
	for _, g := range a.MIG {
		if slices.Contains(named, g.UUID) {
			lost = append(lost, g.UUID)
		}
	}
	return lost
}

// FindLost sets Lost by the conditions that the agents of the members' nodes
// reported.
func (u *Unit) FindLost(told func(resource.NodeID) []record.Condition) {
	for i, at := range u.Places {
		if at.Node == "" {
			continue
		}
		lost := LostDevices(told(at.Node), at.Assignment)
		if lost == nil {
			continue
		}
		if u.Lost == nil {
			u.Lost = make([][]string, len(u.Places))
		}
		u.Lost[i] = lost
	}
}

// showLost is the condition of what holds lost devices of a node.
func showLost(lost []string, node resource.NodeID) api.Condition {
	return api.Condition{
		Type: deviceLost, Status: "True", Reason: deviceLost,
		Message: strings.Join(lost, ", ") + " of node " + string(node) + " is lost; `muster describe node " + string(node) + "` tells why",
	}
}

// showLostIn adds the condition to a job whose members hold lost devices.
func (j *Job) showLostIn(s *api.JobStatus) {
	var members []string
	for i := range j.Units {
		u := &j.Units[i]
		for k, lost := range u.Lost {
			if lost != nil {
				members = append(members, u.MemberName(k)+": "+strings.Join(lost, ", ")+" of node "+string(u.Places[k].Node))
			}
		}
	}
	if members == nil {
		return
	}
	s.Conditions = append(s.Conditions, api.Condition{
		Type: deviceLost, Status: "True", Reason: deviceLost, Message: "lost devices: " + strings.Join(members, "; "),
	})
}
