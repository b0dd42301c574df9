// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	corev1 "k8s.io/api/core/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// publish makes a record visible to readers; gone takes it away.
func (p *Provider) publish(r *record, gone bool) {
	c := r.snapshot()
	if !gone {
		p.metrics.setHeld(r)
	}
	p.mu.Lock()
	old, known := p.published[r.name]
	var changed bool
	if known {
		p.inClass.Delete(old.Enrolment.Class, r.name)
	}
	if gone {
		delete(p.published, r.name)
		changed = known
	} else {
		c.Refused = p.refusals[r.name].Refusal
		p.published[r.name] = c
		p.inClass.Insert(c.Enrolment.Class, r.name)
		changed = !known || !old.Equal(c)
	}
	subscribers := p.subscribers
	p.mu.Unlock()
	if !changed {
		return
	}
	if !gone {
		p.metrics.setState(r.name, old.State, c.State)
		p.announce(old, c)
	}
	notify(subscribers, r.name)
}

func notify(subscribers []func(mcr.ClusterName), name mcr.ClusterName) {
	for _, fn := range subscribers {
		fn(name)
	}
}

// announce writes an event on the enrolled object when a change is worth one.
func (p *Provider) announce(old, now Cluster) {
	if p.o.Recorder == nil || (old.State == now.State && old.Reason == now.Reason) || now.State == StateConnecting {
		return
	}
	if old.State == "" && now.State == StatePending && now.Reason == ReasonConnecting {
		return
	}
	eventType := corev1.EventTypeNormal
	if now.State == StateDegraded || now.State == StateBackoff {
		eventType = corev1.EventTypeWarning
	}
	p.record(now.Enrolment.Object, eventType, now.Reason, now.Message)
}

func (p *Provider) record(o ObjectReference, eventType, reason, message string) {
	if p.o.Recorder == nil {
		return
	}
	apiVersion, kind := o.ToAPIVersionAndKind()
	ref := &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
	p.o.Recorder.Eventf(ref, nil, eventType, reason, "Connect", "%s", message)
}
