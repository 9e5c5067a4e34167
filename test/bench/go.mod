module github.com/musterd/muster/test/bench

go 1.26.0

require (
	github.com/NVIDIA/go-gpuallocator v0.6.0
	github.com/musterd/muster v0.0.0
	github.com/project-codeflare/multi-cluster-app-dispatcher v1.40.0
	google.golang.org/grpc v1.85.0
	k8s.io/klog/v2 v2.140.0
	k8s.io/kubelet v0.37.2
)

require (
	github.com/NVIDIA/go-nvlib v0.7.3 // indirect
	github.com/NVIDIA/go-nvml v0.13.4-0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261005182115-fad411399dd8 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/musterd/muster => ../..

// What go-gpuallocator was released with; a newer one lacks what it uses. Muster's own
// version is in its go.mod: nothing compared here asks a driver.
replace github.com/NVIDIA/go-nvml => github.com/NVIDIA/go-nvml v0.12.9-0
