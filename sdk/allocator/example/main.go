// The example of the API's design: only the paths of the imports differ, and the
// two results of Create that the example does not use go to _.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/musterd/muster/sdk/allocator"
)

func main() {
	client, _ := allocator.NewClient(allocator.Config{
		Endpoint: "https://scheduler.internal:6443",
		Token:    os.Getenv("SCHEDULER_TOKEN"),
	})

	// Submit allocation with constraints
	_, _ = client.Allocations("ml-team").Create(context.Background(), &allocator.Allocation{
		Name: "training-job-1",
		Spec: allocator.AllocationSpec{
			Resources: allocator.ResourceRequirements{
				Requests: allocator.ResourceList{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"},
				Limits:   allocator.ResourceList{"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4"},
			},
			Priority:      100,
			PriorityClass: "high-priority",
			NodeSelector:  map[string]string{"gpu-type": "nvidia-a100"},
		},
	})

	// Watch for status changes
	watcher, _ := client.Allocations("ml-team").Watch(context.Background(),
		allocator.WatchOptions{FieldSelector: "metadata.name=training-job-1"})

	for event := range watcher.ResultChan() {
		alloc := event.Object.(*allocator.Allocation)
		if alloc.Status.Phase == "Running" {
			fmt.Printf("Allocated on node: %s\n", alloc.Status.NodeName)
			break
		}
	}

	// Release when done
	client.Allocations("ml-team").Delete(context.Background(), "training-job-1",
		allocator.DeleteOptions{GracePeriodSeconds: 30})
}
