// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	deprecatedrecord "k8s.io/client-go/tools/record"
	recordutil "k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	eventrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// maxNote is what an API server accepts as the note of an Event, in bytes.
const maxNote = 1024

// GetEventRecorder returns a recorder of Events in the cluster. Events that exceed the cluster's bounds are dropped.
func (c *connected) GetEventRecorder(name string) eventrecorder.EventRecorder {
	hostname, _ := os.Hostname() // Like client-go.
	return &eventRecorder{writer: c.events, scheme: c.GetScheme(), controller: name, instance: name + "-" + hostname}
}

// GetEventRecorderFor implements the deprecated half of recorder.Provider. It records nothing: controller-runtime's
// would start goroutines that nothing ends.
func (*connected) GetEventRecorderFor(string) deprecatedrecord.EventRecorder {
	return &deprecatedrecord.FakeRecorder{}
}

// eventRecorder composes the same Events as client-go's recorder.
type eventRecorder struct {
	writer               *eventWriter
	scheme               *runtime.Scheme
	controller, instance string
}

// Eventf implements events.EventRecorder.
func (r *eventRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, eventType, reason, action, note, args...)
}

// AnnotatedEventf implements events.AnnotatedEventRecorder.
func (r *eventRecorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any,
) {
	now := r.writer.clock.Now()
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.writer.log.Error(err, "Cannot write an event, because its object has no kind", "reason", reason)
		return
	}
	e := &eventsv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Name: recordutil.GenerateEventName(about.Name, now.UnixNano()), Namespace: about.Namespace, Annotations: annotations,
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: r.controller, ReportingInstance: r.instance,
		Type: eventType, Reason: reason, Action: action, Regarding: *about, Note: fmt.Sprintf(note, args...),
	}
	if e.Namespace == "" {
		e.Namespace = corev1.NamespaceDefault
	}
	if e.Note = strings.ToValidUTF8(e.Note, "\uFFFD"); len(e.Note) > maxNote {
		e.Note = strings.Clone(strings.ToValidUTF8(e.Note[:maxNote], "")) // The rest is not kept.
	}
	if related != nil {
		e.Related, _ = reference.GetReference(r.scheme, related) // Like client-go: the event is written without it.
	}
	r.writer.add(e)
}

// writeEvents returns what creates an Event, or updates its series if it is known to exist.
func writeEvents(client dynamic.Interface, timeout time.Duration) func(ctx context.Context, e *eventsv1.Event, exists bool) error {
	events := client.Resource(eventsv1.SchemeGroupVersion.WithResource("events"))
	return func(ctx context.Context, e *eventsv1.Event, exists bool) error {
		ctx, decoded := limits.WithDecoding(ctx)
		defer decoded()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if exists {
			patch, err := json.Marshal(map[string]any{"series": e.Series})
			if err != nil {
				return fmt.Errorf("cannot encode the series of an event: %w", err)
			}
			_, err = events.Namespace(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			if !apierrors.IsNotFound(err) {
				return err //nolint:wrapcheck // The caller distinguishes the API's errors.
			}
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e)
		if err != nil {
			return fmt.Errorf("cannot encode an event: %w", err)
		}
		_, err = events.Namespace(e.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // An earlier attempt was executed though its answer was lost.
			return nil
		}
		return err //nolint:wrapcheck // As above.
	}
}
