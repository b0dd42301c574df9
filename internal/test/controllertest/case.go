// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// Case is one test, and how long it waits.
type Case struct {
	T   *testing.T
	Ctx context.Context

	// Patience is how long a condition may take. It is long, for a machine that is busy with other tests; what should
	// be noticed, and not be found by looking again, wants one that is shorter than the controller's slow retry.
	Patience time.Duration
}

// Within waits until fn returns no error, and fails the test with what it returned last if that takes too long.
func (c *Case) Within(what string, fn func() error) {
	c.T.Helper()
	var last error
	err := testenv.Poll(c.Ctx, c.Patience, func(context.Context) (bool, error) {
		last = fn()
		return last == nil, nil
	})
	if err != nil {
		c.T.Fatalf("%s: %v (%v)", what, last, err)
	}
}

// AtRest waits until no request is new for a number of looks, 20 milliseconds apart, and every request is answered:
// what follows from a slow answer is still to come. progress returns how many requests were seen, and how many of them
// have no answer yet.
func (c *Case) AtRest(looks int, progress func() (seen, unanswered int)) {
	c.T.Helper()
	quiet, before := 0, -1
	err := wait.PollUntilContextTimeout(c.Ctx, 20*time.Millisecond, c.Patience, true, func(context.Context) (bool, error) {
		now, unanswered := progress()
		if now == before && unanswered == 0 {
			quiet++
		} else {
			quiet, before = 0, now
		}
		return quiet >= looks, nil
	})
	if err != nil {
		c.T.Fatalf("the controller does not come to rest: it still asks an API server: %v", err)
	}
}

// Create creates objects. An API server serves a kind a moment after its definition was created.
func (c *Case) Create(in client.Client, objs ...client.Object) {
	c.T.Helper()
	for _, obj := range objs {
		err := testenv.Poll(c.Ctx, c.Patience, func(ctx context.Context) (bool, error) {
			err := in.Create(ctx, obj)
			if meta.IsNoMatchError(err) {
				return false, nil
			}
			return true, err
		})
		if err != nil {
			c.T.Fatalf("cannot create %T %q: %v", obj, obj.GetName(), err)
		}
	}
}

// Delete deletes an object, if it is there.
func (c *Case) Delete(in client.Client, obj client.Object) {
	c.T.Helper()
	if err := client.IgnoreNotFound(in.Delete(c.Ctx, obj)); err != nil {
		c.T.Fatalf("cannot delete %T %q: %v", obj, obj.GetName(), err)
	}
}

// Undefine deletes a definition, and waits until it is gone; see testenv.ReleaseDefinitions.
func (c *Case) Undefine(in client.Client, definition client.Object) {
	c.T.Helper()
	c.Delete(in, definition)
	c.WaitForUndefined(in, definition)
}

// WaitForUndefined waits until a definition is gone.
func (c *Case) WaitForUndefined(in client.Client, definition client.Object) {
	c.T.Helper()
	c.Within("the definition "+definition.GetName()+" goes", func() error {
		err := in.Get(c.Ctx, client.ObjectKeyFromObject(definition), definition)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, testenv.ReleaseDefinitions(c.Ctx, in), errors.New("it is there"))
	})
}

// WaitForGone waits until there is no object of that kind and name.
func (c *Case) WaitForGone(in client.Client, obj client.Object) {
	c.T.Helper()
	c.Within(obj.GetNamespace()+"/"+obj.GetName()+" is gone", func() error {
		err := in.Get(c.Ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there: %v", obj))
	})
}

// WaitForEvent waits for an event with a reason about an object of that name, and returns its note.
func (c *Case) WaitForEvent(in client.Client, regarding, reason string) (note string) {
	c.T.Helper()
	c.Within("an event about "+regarding+" has the reason "+reason, func() error {
		events := &eventsv1.EventList{}
		if err := in.List(c.Ctx, events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == reason && e.Regarding.Name == regarding {
				note = e.Note
				return nil
			}
		}
		return errors.New("there is none")
	})
	return note
}

// Edit changes an object, and tries again if another client has changed it meanwhile.
func (c *Case) Edit(in client.Client, obj client.Object, change func()) {
	c.T.Helper()
	c.edit(in, obj, change, func() error { return in.Update(c.Ctx, obj) })
}

// EditStatus changes an object's status like Edit.
func (c *Case) EditStatus(in client.Client, obj client.Object, change func()) {
	c.T.Helper()
	c.edit(in, obj, change, func() error { return in.Status().Update(c.Ctx, obj) })
}

func (c *Case) edit(in client.Client, obj client.Object, change func(), update func() error) {
	c.T.Helper()
	c.Within("editing "+obj.GetName(), func() error {
		if err := in.Get(c.Ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return update()
	})
}
