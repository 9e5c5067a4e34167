package deviceplugin

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/grant"
)

// Strategy is a way to tell the container runtime which devices a container gets. The
// values are those of NVIDIA's device plugin.
type Strategy string

const (
	// EnvVar sets NVIDIA_VISIBLE_DEVICES, for NVIDIA's container runtime.
	EnvVar Strategy = "envvar"
	// CDIAnnotations adds an annotation with the names of CDI devices.
	CDIAnnotations Strategy = "cdi-annotations"
	// CDICRI names CDI devices in the field of the container runtime interface.
	CDICRI Strategy = "cdi-cri"
)

// Strategies are all, in the order of the documents.
var Strategies = []Strategy{EnvVar, CDIAnnotations, CDICRI}

const (
	// DefaultResource is the resource name of whole GPUs.
	DefaultResource = "muster.io/gpu"
	// DefaultCDIKind is the kind of NVIDIA's device plugin.
	DefaultCDIKind = "k8s.device-plugin.nvidia.com/gpu"
	// DefaultSockets is the kubelet's folder of device plugins.
	DefaultSockets = "/var/lib/kubelet/device-plugins"
	// DefaultPodResources is the socket of the kubelet's PodResources API.
	DefaultPodResources = "/var/lib/kubelet/pod-resources/kubelet.sock"

	// MaxShares is the most shares of one device.
	MaxShares = 64
	// MaxPool is the most devices and MIG instances of one pool.
	MaxPool = grant.MaxKubeletPool
	// maxUUID is the most bytes of a device's UUID: the kubelet takes identifiers of at
	// most 63 bytes, and a share adds "::" and two digits.
	maxUUID = 59
)

// Config says which devices the kubelet hands out, and how.
type Config struct {
	// Pool are the UUIDs of GPUs and MIG instances; Plugin.SetPool replaces them.
	Pool []string
	// Shares are devices of Pool that several containers use at once, with the number
	// of shares of each. A share limits nothing: it is a place.
	Shares map[string]int
	// Resource is the resource name of whole GPUs; "" is DefaultResource. Shares are
	// Resource with ".shared" behind it, MIG instances DOMAIN/mig-PROFILE.
	Resource string
	// Strategies are the ways to name devices to the runtime; none is EnvVar.
	Strategies []Strategy
	// CDIKind is VENDOR/CLASS of the CDI devices; "" is DefaultCDIKind.
	CDIKind string
	// Sockets is the folder of the kubelet's socket; "" is DefaultSockets.
	Sockets string
	// PodResources is the socket of the PodResources API; "" is DefaultPodResources.
	PodResources string
	// Look is the time between two looks at the kubelet's socket; 0 is 1 s.
	Look time.Duration
	// List is the time between two lists of the PodResources API; 0 is 10 s.
	List time.Duration
	// Absent is how long a device must be absent from the lists before it is returned;
	// 0 is 30 s.
	Absent time.Duration
}

// resourceName is DOMAIN/NAME: a DNS subdomain and a qualified name of Kubernetes.
var resourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// uuidText is a UUID of the driver.
var uuidText = regexp.MustCompile(`^(GPU|MIG)-[A-Za-z0-9-]+$`)

// Checked returns the configuration with its defaults, or all its faults.
func (c Config) Checked() (Config, error) {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def(&c.Resource, DefaultResource)
	def(&c.CDIKind, DefaultCDIKind)
	def(&c.Sockets, DefaultSockets)
	def(&c.PodResources, DefaultPodResources)
	if len(c.Strategies) == 0 {
		c.Strategies = []Strategy{EnvVar}
	}
	for d, value := range map[*time.Duration]time.Duration{&c.Look: time.Second, &c.List: 10 * time.Second, &c.Absent: 30 * time.Second} {
		if *d == 0 {
			*d = value
		}
	}
	if n := len(c.Pool); n > MaxPool {
		fault("pool: %d devices, want at most %d", n, MaxPool)
	}
	for i, uuid := range c.Pool {
		switch {
		case len(uuid) > maxUUID || !uuidText.MatchString(uuid):
			fault("pool[%d]: %q is no UUID of a GPU or MIG instance (`muster-agent inspect` lists them)", i, uuid)
		case slices.Index(c.Pool, uuid) < i:
			fault("pool[%d]: %s is listed twice", i, uuid)
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(c.Shares)) {
		switch n := c.Shares[uuid]; {
		case !slices.Contains(c.Pool, uuid):
			fault("shares: {%s: %d}: the device is not in the pool", uuid, n)
		case n < 2 || n > MaxShares:
			fault("shares: {%s: %d}: want 2 to %d shares", uuid, n, MaxShares)
		}
	}
	for name, value := range map[string]string{"resource": c.Resource, "cdiKind": c.CDIKind} {
		_, last, _ := strings.Cut(value, "/")
		if len(value) > 253 || len(last) > 63-len(".shared") || !resourceName.MatchString(value) {
			fault("%s: %q is not DOMAIN/NAME", name, value)
		}
	}
	for i, s := range c.Strategies {
		if !slices.Contains(Strategies, s) {
			fault("strategies[%d]: %q is none of %s, %s, %s", i, s, EnvVar, CDIAnnotations, CDICRI)
		}
	}
	for name, value := range map[string]string{"sockets": c.Sockets, "podResources": c.PodResources} {
		if !filepath.IsAbs(value) {
			fault("%s: %q is no absolute path", name, value)
		}
	}
	if c.Look < 0 || c.List < 0 || c.Absent < 0 {
		fault("look %s, list %s and absent %s: want no negative time", c.Look, c.List, c.Absent)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return c, errors.Join(errs...)
}
