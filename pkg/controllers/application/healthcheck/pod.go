// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
)

// maxHealthCheckPrefix bounds the part of the Application's name in its Pod's name, so that it is a valid host name.
const maxHealthCheckPrefix = 40

// Pod is the Pod of an Application's health check; nil if it has none, or is being deleted.
//
// It is named by the hash of the template, as a Deployment names ReplicaSets: another template gives another Pod. Like
// Pods of other templates, it gets only the labels and annotations of the template's metadata. Finalizers are left out,
// too: no controller would remove them from a replaced Pod.
func Pod(app *appsv1alpha1.Application) *corev1.Pod {
	if app.Spec.HealthCheck == nil || !app.DeletionTimestamp.IsZero() {
		return nil
	}
	template := &app.Spec.HealthCheck.Template
	hash := templateHash(template)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   app.Namespace,
			Name:        healthCheckName(app.Name, hash),
			Labels:      maps.Clone(template.Labels),
			Annotations: maps.Clone(template.Annotations),
			// The garbage collector deletes it with the Application. It does not block a foreground deletion.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1alpha1.GroupVersion.String(), Kind: "Application", Name: app.Name, UID: app.UID, Controller: new(true),
			}},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[appsv1alpha1.HealthCheckLabel] = labelValue(app.Name)
	pod.Labels[appsv1alpha1.TemplateHashLabel] = hash
	// Used to retrieve the Application of an object.
	pod.Annotations[appsv1alpha1.ApplicationAnnotation] = app.Name
	return pod
}

// IsPod reports whether labels are those of a health check's Pod. Such a Pod is never a component: selection neither
// sets nor removes its owner reference.
func IsPod(labels map[string]string) bool {
	return labels[appsv1alpha1.HealthCheckLabel] != "" && labels[appsv1alpha1.TemplateHashLabel] != ""
}

// templateHash is a hash of a template, encoded as for ReplicaSets without forming words. It hashes the JSON rather
// than a dump of the Go struct: otherwise fields added to Pods by Kubernetes would change every hash, and a new release
// of Masthead would replace every Pod.
func templateHash(template *corev1.PodTemplateSpec) string {
	h := fnv.New32a()
	data, err := json.Marshal(template)
	if err != nil {
		// It was decoded from JSON, so it can be encoded. The error's message is only a fallback.
		data = []byte(err.Error())
	}
	_, _ = h.Write(data) // It never fails.
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// healthCheckName is the name of a health check's Pod. A long Application name is cut, and its hash appended to keep it
// distinct.
func healthCheckName(application, hash string) string {
	if len(application) > maxHealthCheckPrefix {
		h := fnv.New32a()
		_, _ = h.Write([]byte(application))
		digest := rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
		application = strings.TrimRight(application[:maxHealthCheckPrefix-len(digest)-1], "-.") + "-" + digest
	}
	return application + "-" + hash
}

// labelValue cuts a name to a valid label value.
func labelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-._")
}

// Record is the record kept of a health check's Pod.
type Record struct {
	Key types.NamespacedName
	UID types.UID

	// Owner is the UID of the controlling Application; empty if something else controls it, or nothing.
	Owner types.UID

	// Hash is the hash of its template.
	Hash string

	deleting bool
	phase    corev1.PodPhase

	// ready is the status of its condition Ready; empty if it has none. message says why it is not True.
	ready   corev1.ConditionStatus
	Message string
}

// Reduce returns the record of a Pod; false if it is not a health check's. It does not keep obj.
func Reduce(obj *unstructured.Unstructured) (Record, bool) {
	labels := obj.GetLabels()
	if !IsPod(labels) {
		return Record{}, false
	}
	p := Record{
		Key:      types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		UID:      obj.GetUID(),
		Hash:     condition.Text(labels[appsv1alpha1.TemplateHashLabel], validation.LabelValueMaxLength),
		deleting: obj.GetDeletionTimestamp() != nil,
	}
	if o := metav1.GetControllerOfNoCopy(obj); o != nil && ownedByAnApplication(*o) {
		p.Owner = o.UID
	}
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	p.phase = corev1.PodPhase(condition.Text(phase, bounds.ComponentReason))
	p.ready, p.Message = readiness(obj)
	return p, true
}

func ownedByAnApplication(o metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	return group == appsv1alpha1.GroupVersion.Group && o.Kind == "Application"
}

// readiness is the status of a Pod's condition Ready, and why it is not True: from the Pod's status as a whole (such as
// an eviction), the scheduler, or the condition.
func readiness(obj *unstructured.Unstructured) (ready corev1.ConditionStatus, message string) {
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	text := func(m map[string]any, field string) string {
		s, _ := m[field].(string)
		return condition.Text(s, bounds.ComponentMessage)
	}
	var scheduling, readiness string
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if !ok {
			continue
		}
		switch {
		case c["type"] == string(corev1.PodReady):
			ready, readiness = corev1.ConditionStatus(text(c, "status")), text(c, "message")
		case c["type"] == string(corev1.PodScheduled) && c["status"] == string(corev1.ConditionFalse):
			scheduling = text(c, "message")
		}
	}
	whole := strings.TrimSuffix(strings.TrimPrefix(text(status, "reason")+": "+text(status, "message"), ": "), ": ")
	if ready == corev1.ConditionTrue {
		return ready, condition.Text(whole, bounds.ComponentMessage)
	}
	return ready, condition.Text(cmp.Or(whole, scheduling, readiness), bounds.ComponentMessage)
}

// ended reports whether a Pod has stopped for good. A health check has to keep running, so success counts like failure.
func (p Record) ended() bool {
	return p.phase == corev1.PodFailed || p.phase == corev1.PodSucceeded
}

// View is the state of a health check's Pod.
type View struct {
	// Pod is the name of the existing or wanted Pod.
	Pod string

	// Ready is the status of its condition Ready; Unknown if it has none, or if there is no Pod.
	Ready corev1.ConditionStatus

	// Problem says why there is no Pod, or why it is not ready, and when to check again.
	Problem *condition.Error

	// Syncing reports whether the Pods have not been listed yet, and may be soon.
	Syncing bool
}

// view is the View of a health check's Pod.
func (p Record) view() View {
	v := View{Pod: p.Key.Name, Ready: p.ready}
	because := ""
	if p.Message != "" {
		because = ": " + p.Message
	}
	switch {
	case p.ended():
		// Regardless of what its kubelet reported last.
		v.Ready = corev1.ConditionFalse
		v.Problem = &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckNotReady, Message: fmt.Sprintf("The Pod %q has ended (%s) and will be replaced%s", p.Key.Name, p.phase, because)}
	case p.ready == corev1.ConditionTrue:
		return v
	case p.ready == corev1.ConditionFalse:
		v.Problem = &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckNotReady, Message: fmt.Sprintf("The Pod %q is not ready%s", p.Key.Name, because)}
	default:
		v.Ready = corev1.ConditionUnknown
		v.Problem = &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: fmt.Sprintf("The Pod %q does not report yet whether it is ready%s", p.Key.Name, because)}
	}
	if p.deleting {
		v.Problem = &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: fmt.Sprintf("The Pod %q is being deleted; another one will replace it.", p.Key.Name)}
	}
	return v
}
