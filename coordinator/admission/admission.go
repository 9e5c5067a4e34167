// Package admission decides with which labels and with how much capacity a node
// takes part. Labels come in two layers, the agent's and the operators', below
// those that follow from the registration; capacity that grows may wait for an
// operator, while the node gives the approved part. Which node takes which work is
// place's to decide, and where layers and approvals are kept is the store's.
//
// Pure: no clock, no I/O.
package admission

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Registered is the part of a registration that labels are derived from.
type Registered struct {
	Node           resource.NodeID
	AssumeDead     time.Duration // limit without contact; 0 = not opted in
	StartsWork     bool          // the agent starts the commands of members
	RunsContainers bool          // the agent starts them in root file systems of their own, too
	MountsFolders  bool          // the agent mounts folders of the host there
	Devices        int
	Product        string         // model of the first device
	Memory         resource.Bytes // of the first device; 0 = not known
	Clique         string         // of all devices; "" = none
}

// The labels that follow from the devices. NVIDIA's GPU feature discovery uses
// the same names and units; a host with several models is named after its first
// device.
const (
	productLabel = "nvidia.com/gpu.product"
	countLabel   = "nvidia.com/gpu.count"
	memoryLabel  = "nvidia.com/gpu.memory" // of one device, in MiB
	cliqueLabel  = "nvidia.com/gpu.clique" // the GPUs that NVLink connects over hosts
	// memoryGiBLabel is the memory of one device in GiB. It is not reserved: any
	// layer may set it otherwise.
	memoryGiBLabel = "gpu-memory"
)

// reserved are the labels that no layer may set.
func (r Registered) reserved() map[string]string {
	labels := map[string]string{api.HostnameLabel: string(r.Node), api.NodeLabel: string(r.Node)}
	if r.AssumeDead > 0 {
		labels[api.AssumeDeadLabel] = r.AssumeDead.String()
	}
	if r.StartsWork {
		labels[resource.StartsWorkLabel] = resource.StartsWorkValue
	}
	if r.RunsContainers {
		labels[resource.RunsContainersLabel] = resource.RunsContainersValue
	}
	if r.MountsFolders {
		labels[resource.MountsFoldersLabel] = resource.MountsFoldersValue
	}
	if r.Devices == 0 {
		return labels
	}
	labels[countLabel] = strconv.Itoa(r.Devices)
	if product := devices.ProductLabel(r.Product); product != "" {
		labels[productLabel] = product
	}
	if r.Clique != "" {
		labels[cliqueLabel] = r.Clique
	}
	if r.Memory > 0 {
		labels[memoryLabel] = strconv.FormatInt(int64(r.Memory>>20), 10)
	}
	return labels
}

// Labels are the labels by which a node is selected and shown: those that follow
// from its registration, then the operators', then the agent's. Reserved keys of
// the two layers count for nothing.
func Labels(r Registered, agent, operator map[string]string) map[string]string {
	labels := map[string]string{}
	if r.Memory > 0 {
		labels[memoryGiBLabel] = strconv.FormatInt(int64(r.Memory>>30), 10)
	}
	for _, layer := range []map[string]string{agent, operator} {
		for k, v := range layer {
			if !api.ReservedLabel(k) {
				labels[k] = v
			}
		}
	}
	maps.Copy(labels, r.reserved())
	return labels
}

// maxIgnored bounds how many ignored labels are named, and maxKey the length of
// each name.
const (
	maxIgnored = 16
	maxKey     = 128
)

// AgentLabels separates the labels that an agent has registered into its layer
// and the keys that are ignored, ascending: reserved ones, those that are no
// labels, and those beyond api.MaxLabels. A reserved label with the value
// that the node has anyway is left out of both: older agents send such.
func AgentLabels(r Registered, labels map[string]string) (layer map[string]string, ignored []string) {
	reserved := r.reserved()
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		v := labels[k]
		switch {
		case api.ReservedLabel(k) && reserved[k] == v:
		case api.ReservedLabel(k), !api.IsLabelKey(k), !api.IsLabelValue(v), len(layer) == api.MaxLabels:
			if len(ignored) < maxIgnored {
				ignored = append(ignored, clip(k))
			}
		default:
			if layer == nil {
				layer = map[string]string{}
			}
			layer[k] = v
		}
	}
	return layer, ignored
}

func clip(s string) string {
	if len(s) <= maxKey {
		return s
	}
	return strings.ToValidUTF8(s[:maxKey], "") + "…"
}
