package resource

import "fmt"

// Reason is one constraint behind a refusal, with its numbers. Refusals are values,
// not errors. In JSON the numbers are quantities with their units, and short is
// their difference (reason_json.go).
type Reason struct {
	// Code is one of the Reason constants: stable, for programs.
	Code string `json:"code" example:"Insufficient"`
	// Resource is the resource that is short, where the code is about an amount.
	Resource Name `json:"resource,omitempty" example:"nvidia.com/gpu"`
	// Want is the requested amount; it is written also at 0.
	Want int64 `json:"want,omitempty" format:"quantity" unit:"of the resource, as a quantity" example:"8"`
	// Have is the amount that there is; it is written also at 0.
	Have int64 `json:"have,omitempty" format:"quantity" unit:"of the resource, as a quantity" example:"6"`
	// Detail is the rest of the reason in plain words.
	Detail string `json:"detail,omitempty" example:"2 devices are tainted"`
}

// The codes a Reason may carry.
const (
	ReasonInsufficient   = "Insufficient"       // Have < Want
	ReasonNUMA           = "NUMAAlignment"      // enough in total, not under the NUMA policy
	ReasonLink           = "GPULink"            // enough GPUs, not so connected
	ReasonModel          = "GPUModel"           // no or too few GPUs of the requested model or memory
	ReasonFragmented     = "Fragmented"         // enough in total, not on one device
	ReasonUnhealthy      = "Unhealthy"          // devices exist but are tainted
	ReasonCordoned       = "Cordoned"           // the node takes no new work
	ReasonUnregistered   = "Unregistered"       // the agent has not registered yet
	ReasonStaleEpoch     = "StaleEpoch"         // the request is of an older leader
	ReasonDecided        = "Decided"            // the transaction has ended here
	ReasonDiskFull       = "DiskFull"           // no promise without its record
	ReasonMemoryPressure = "MemoryPressure"     // the host is short of memory
	ReasonQuarantined    = "Quarantined"        // the store has lost records of the node's grants
	ReasonNodeSelector   = "NodeSelector"       // labels do not match the node selector
	ReasonNodeAffinity   = "NodeAffinity"       // labels match no required term of the node affinity
	ReasonTaint          = "Taint"              // a taint is not tolerated
	ReasonAffinity       = "Affinity"           // the node's domain has no unit that the affinity selects
	ReasonAntiAffinity   = "AntiAffinity"       // the node's domain has a unit that may not share it
	ReasonSpread         = "TopologySpread"     // one more member in the node's domain would exceed the skew
	ReasonTopology       = "TopologyDomain"     // no domain of nodes has room for all members
	ReasonQuota          = "Quota"              // over the namespace's limit
	ReasonUnreachable    = "Unreachable"        // no stream to the agent
	ReasonAheadInQueue   = "AheadInQueue"       // others are in front
	ReasonViolation      = "ProtocolViolation"  // the node's answer did not match the request
	ReasonBanned         = "Banned"             // an operator keeps the node out
	ReasonFenced         = "Fenced"             // the agent has to register again
	ReasonDead           = "ConfirmedDead"      // an operator has confirmed that the machine is off
	ReasonUnread         = "RegistrationUnread" // the leader has not read the agent's registration
	ReasonHostDiffers    = "HostDiffers"        // the host has more than its agent registered
	ReasonApproval       = "AwaitingApproval"   // of hardware that the node has beyond the approved
	ReasonSilent         = "LeaseExpired"       // the agent has sent no heartbeat
	ReasonInvalidRequest = "InvalidRequest"     // the request breaks its own rules
)

// Short is how much is missing, never negative.
func (r Reason) Short() int64 { return max(0, SaturatingSub(r.Want, r.Have)) }

// String returns e.g. `Insufficient nvidia.com/gpu: want 8, have 3`.
func (r Reason) String() string {
	s := r.Code
	if r.Resource != "" {
		s += fmt.Sprintf(" %s: want %s, have %s", r.Resource, FormatAmount(r.Resource, r.Want), FormatAmount(r.Resource, r.Have))
	}
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	return s
}
