package coordinator_test

import (
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

func TestDeletingARunningAllocationFreesItsDevices(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		grace := int64(5)
		a, err := k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{GracePeriodSeconds: &grace})
		if err != nil || a.Status.Phase != api.Terminating || a.Metadata.DeletionTimestamp == "" || *a.Metadata.DeletionGracePeriodSeconds != 5 {
			t.Errorf("%v, %+v", err, a)
		}
		phase(t, c, "a", "")
		_, err = k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{})
		refused(t, err, 404, "allocation a not found in namespace default")
		c.Converge()
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute})
		c.Converge()
	})
}

func TestDeletingAnAllocationThatWaitsTakesItOutOfTheQueue(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		allocate(t, k, rig.Submission{Name: "b", GPUs: 8})
		remove(t, k, "b")
		phase(t, c, "b", "")
		c.Converge()
		remove(t, k, "a")
		c.Converge()
		if n := grants(c); n != 0 {
			t.Errorf("%d grants", n)
		}
	})
}

func TestDeletingAnAllocationWhileItsAgentIsAsked(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		asked := make(chan struct{}, 1)
		c.Tap(func(m rig.Message) bool {
			if m.FromAgent.GetReply() == nil {
				return true
			}
			asked <- struct{}{}
			return false // its Yes is lost
		})
		answered := make(chan error)
		go func() {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 8, RequestID: "r"})
			answered <- err
		}()
		<-asked
		c.Tap(nil)
		_, err := k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{})
		if made := <-answered; err != nil || made != nil {
			t.Errorf("the deletion: %v, the creation before: %v", err, made)
		}
		c.Converge()
		if n := grants(c); n != 0 {
			t.Errorf("%d grants", n)
		}
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
	})
}

func TestAMemberIsEndedThroughItsJob(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		submit(t, k, rig.Submission{Name: "j", GPUs: 1, Members: 2, Gang: 2})
		_, err := k.DeleteAllocation(t.Context(), rig.Namespace, "j-0", api.DeleteOptions{})
		refused(t, err, 409, "allocation j-0 is a member of job j; cancel or delete the job")
		c.Converge()
	})
}

func TestACancelledJobStaysAndADeletedOneGoes(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		// Two members run, the third waits.
		submit(t, k, rig.Submission{Name: "j", GPUs: 4, Members: 3})
		active(t, c, "j", 2)
		j, err := k.CancelJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{Reason: "NoLongerNeeded"})
		if err != nil || j.Status.Phase != api.Cancelling {
			t.Fatalf("%v, %+v", err, j)
		}
		c.Converge()
		for range 2 { // the next leader shows the same
			j, err = k.GetJob(t.Context(), rig.Namespace, "j", 0)
			if err != nil || j.Status.Phase != api.Cancelled || j.Status.Message != "NoLongerNeeded" || len(j.Status.Allocations) != 3 {
				t.Errorf("%v, %+v", err, j)
			}
			for i, m := range j.Status.Allocations {
				if m.Phase != api.Cancelled {
					t.Errorf("member %d is %s", i, m.Phase)
				}
			}
			a, err := k.GetAllocation(t.Context(), rig.Namespace, "j-0", 0)
			if err != nil || a.Status.Message != "NoLongerNeeded" {
				t.Errorf("%v, %+v", err, a)
			}
			k.Stop()
			k = c.StartCoordinator("c2")
			c.AwaitReady(1)
		}
		_, _, err = k.Job(t.Context(), rig.Submission{Name: "j", GPUs: 4, Members: 3})
		refused(t, err, 409, "job j already exists")
		if _, err := k.CancelJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Errorf("cancelled once more: %v", err)
		}
		if _, err := k.DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the job is gone", func() bool {
			_, err := k.GetJob(t.Context(), rig.Namespace, "j", 0)
			return rig.Code(err) == 404
		})
		c.Converge()
		submit(t, k, rig.Submission{Name: "j", GPUs: 4, Members: 3})
		active(t, c, "j", 2)
		c.Converge()
	})
}

func TestAJobThatIsDeletedWhileItIsCancelledGoes(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		submit(t, k, rig.Submission{Name: "j", GPUs: 4, Members: 2, Gang: 2})
		c.Agent("n1").Stop() // nothing is freed for now
		if _, err := k.CancelJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		j, err := k.DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{})
		if err != nil || j.Status.Phase != api.Cancelling {
			t.Errorf("%v, %+v", err, j)
		}
		c.Agent("n1").Start()
		c.Eventually("the job is gone", func() bool {
			_, err := k.GetJob(t.Context(), rig.Namespace, "j", 0)
			return rig.Code(err) == 404
		})
		c.Converge()
	})
}

func TestAGangIsReleasedWhenTheLastOfItsAgentsHasFreed(t *testing.T) {
	bubble(t, limited(16, true), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2, Gang: 2, Wait: time.Minute})
		c.Agent("n2").Stop()
		if _, err := k.DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 8, Wait: time.Minute})
		if b.Status.Phase != api.Pending { // n1 is free again, the charge is whole
			t.Errorf("b is %s while half of the gang is not freed", b.Status.Phase)
		}
		if j, err := k.GetJob(t.Context(), rig.Namespace, "j", 0); err != nil || j.Status.Phase != api.Cancelling {
			t.Errorf("%v, %+v", err, j)
		}
		c.Agent("n2").Start()
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}

func TestNothingIsChargedTwiceWhileAReleaseIsOnItsWay(t *testing.T) {
	bubble(t, limited(8, true), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		at := allocate(t, k, rig.Submission{Name: "a", GPUs: 8}).Status.NodeID
		c.Agent(at).Stop()
		remove(t, k, "a")
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 8, Wait: time.Minute})
		if b.Status.Phase != api.Pending { // I10: the charge ends when the devices are free
			t.Errorf("b is %s while a's devices are not free yet", b.Status.Phase)
		}
		c.Agent(at).Start()
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}
