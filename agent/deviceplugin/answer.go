package deviceplugin

import (
	"slices"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// visibleDevices is the variable that NVIDIA's container runtime reads.
	visibleDevices = "NVIDIA_VISIBLE_DEVICES"
	// annotationKey is the annotation of the strategy CDIAnnotations; an identifier that
	// is new in each answer follows.
	annotationKey = "cdi.k8s.io/nvidia-device-plugin_"
)

// answer is the part of an AllocateResponse for one container, as NVIDIA's device
// plugin gives it for the same devices. unique is different in each answer.
func answer(c *Config, uuids []string, unique string) *pluginapi.ContainerAllocateResponse {
	r := &pluginapi.ContainerAllocateResponse{}
	names := make([]string, len(uuids))
	for i, uuid := range uuids {
		names[i] = c.CDIKind + "=" + uuid
	}
	if slices.Contains(c.Strategies, EnvVar) {
		r.Envs = map[string]string{visibleDevices: strings.Join(uuids, ",")}
	}
	if slices.Contains(c.Strategies, CDIAnnotations) && len(names) > 0 {
		r.Annotations = map[string]string{annotationKey + unique: strings.Join(names, ",")}
	}
	if slices.Contains(c.Strategies, CDICRI) {
		for _, name := range names {
			r.CdiDevices = append(r.CdiDevices, &pluginapi.CDIDevice{Name: name})
		}
	}
	return r
}

// devicesOf are the UUIDs of units, each once, in the order of the request.
func devicesOf(ids []string) []string {
	var list []string
	for _, id := range ids {
		if uuid := deviceOf(id); !slices.Contains(list, uuid) {
			list = append(list, uuid)
		}
	}
	return list
}
