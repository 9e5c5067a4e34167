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

// DevicesOf are the GPUs and the MIG instances of an assignment, by UUID, in the order
// of the assignment.
func DevicesOf(a resource.Assignment) []string {
	uuids := make([]string, 0, len(a.GPUs)+len(a.MIG))
	for _, g := range a.GPUs {
		uuids = append(uuids, g.UUID)
	}
	for _, g := range a.MIG {
		uuids = append(uuids, g.UUID)
	}
	return uuids
}

// LostDevices are the devices of an assignment that its agent reports as lost,
// by UUID, in the order of the assignment.
func LostDevices(told []record.Condition, a resource.Assignment) []string {
	named := strings.FieldsFunc(LostMessage(told), func(r rune) bool { return r == ' ' || r == ';' })
	var lost []string
	for _, uuid := range DevicesOf(a) {
		if slices.Contains(named, uuid) {
			lost = append(lost, uuid)
		}
	}
	return lost
}

// Loss is the key of the lost devices of a node.
type Loss struct {
	record.NodeLost
	Revision resource.Revision // of the key; 0 for none
}

// FindLost sets Lost, and takes over the revisions of the keys that name devices of the
// members: the loss of a device, and its return, change what holds it.
func (u *Unit) FindLost(of func(resource.NodeID) Loss) {
	for i := range u.Places {
		u.findLost(i, of)
	}
}

// FindLost is that of the member alone.
func (m *Member) FindLost(of func(resource.NodeID) Loss) {
	if m.Places != nil {
		m.findLost(m.Index, of)
	}
}

func (u *Unit) findLost(i int, of func(resource.NodeID) Loss) {
	at := u.Places[i]
	if at.Node == "" {
		return
	}
	loss := of(at.Node)
	if loss.IsEmpty() {
		return
	}
	for _, uuid := range DevicesOf(at.Assignment) {
		if !loss.Names(uuid) {
			continue
		}
		u.Revision = max(u.Revision, loss.Revision)
		if !slices.Contains(loss.Lost, uuid) {
			continue
		}
		if u.Lost == nil {
			u.Lost = make([][]string, len(u.Places))
		}
		u.Lost[i] = append(u.Lost[i], uuid)
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
