package sdk_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/restserver"
	"github.com/musterd/muster/test/resttest"
)

// exampleServer is a coordinator with one node of 4 CPUs, in this process.
func exampleServer() (endpoint string, stop func()) {
	handler, end := restserver.New(resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30}), token)
	server := httptest.NewServer(handler)
	return server.URL, func() { server.CloseClientConnections(); end(); server.Close() }
}

// work asks for CPUs.
func work(name, cpus string) *api.Allocation {
	return &api.Allocation{
		Metadata: api.ObjectMeta{Name: name},
		Spec:     api.AllocationSpec{Resources: api.Requirements{Requests: map[resource.Name]string{"cpu": cpus}}},
	}
}

// An allocation is made, runs, and ends.
func ExampleFollowed_WaitFor() {
	endpoint, stop := exampleServer()
	defer stop()
	client, err := sdk.NewClient(sdk.Config{Endpoint: endpoint, Token: token})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	mine := client.Allocations("ml-team")
	if _, err := mine.Create(ctx, work("train", "3"), sdk.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	a, err := mine.WaitFor(ctx, "train", sdk.Running[api.Allocation])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Metadata.Name, "runs on", a.Status.NodeName, "with CPUs", a.Status.Assignment.CPUs)
	if _, err := mine.Delete(ctx, "train", api.DeleteOptions{Reason: "done"}); err != nil {
		log.Fatal(err)
	}
	if _, err := mine.WaitFor(ctx, "train", sdk.Deleted[api.Allocation]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("gone")
	// Output:
	// train runs on n1 with CPUs 0-2
	// gone
}

// All pages of a list are one loop.
func ExampleFollowed_All() {
	endpoint, stop := exampleServer()
	defer stop()
	client, err := sdk.NewClient(sdk.Config{Endpoint: endpoint, Token: token})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, name := range []string{"a", "b", "c"} {
		if _, err := client.Allocations("ml-team").Create(ctx, work(name, "1"), sdk.CreateOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	for a, err := range client.Allocations("").All(ctx, sdk.ListOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a.Metadata.Namespace, a.Metadata.Name)
	}
	// Output:
	// ml-team a
	// ml-team b
	// ml-team c
}

// A watch begins with the objects that are there, and goes on with each change.
func ExampleFollowed_Watch() {
	endpoint, stop := exampleServer()
	defer stop()
	client, err := sdk.NewClient(sdk.Config{Endpoint: endpoint, Token: token})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := client.Allocations("ml-team").Create(ctx, work("train", "3"), sdk.CreateOptions{Wait: time.Minute}); err != nil {
		log.Fatal(err)
	}
	for change, err := range client.Allocations("ml-team").Watch(ctx, sdk.WatchOptions{FieldSelector: "status.phase=Running"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(change.Type, change.Object.Metadata.Name, change.Object.Status.Phase)
		break
	}
	// Output:
	// ADDED train Running
}
