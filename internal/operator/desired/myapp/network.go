package myapp

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// Service leads to all Pods that are ready.
func Service(app *v1.MyApp) *corev1.Service {
	s := service(app, naming.App(app.Name), naming.AppSelector(app.Name))
	s.Annotations = desired.Merged(app.Spec.Service.Annotations)
	if app.Spec.Service.Type != "" {
		s.Spec.Type = app.Spec.Service.Type
	}
	return s
}

// LeaderService leads to the Pod that leads, and to nothing while none does.
func LeaderService(app *v1.MyApp) *corev1.Service {
	return service(app, naming.LeaderService(app.Name), naming.LeaderSelector(app.Name))
}

// service leads to the port by its name: while Pods are replaced, old and new ones may listen on different ports.
func service(app *v1.MyApp, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(app, name),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: selector,
			Ports: []corev1.ServicePort{{
				Name: naming.PortApp, Protocol: corev1.ProtocolTCP,
				Port: app.Spec.Service.Port, TargetPort: intstr.FromString(naming.PortApp),
			}},
		},
	}
}

// Ingress is how the application is reached from outside, nil where that is not wanted.
func Ingress(app *v1.MyApp) *networkingv1.Ingress {
	want := app.Spec.Ingress
	if want == nil {
		return nil
	}
	prefix := networkingv1.PathTypePrefix
	object := meta(app, naming.App(app.Name))
	object.Annotations = desired.Merged(want.Annotations)
	out := &networkingv1.Ingress{
		ObjectMeta: object,
		Spec: networkingv1.IngressSpec{
			IngressClassName: want.ClassName,
			Rules: []networkingv1.IngressRule{{
				Host: want.Host,
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{
						Path: want.Path, PathType: &prefix,
						Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
							Name: naming.App(app.Name), Port: networkingv1.ServiceBackendPort{Name: naming.PortApp},
						}},
					}},
				}},
			}},
		},
	}
	if want.TLSSecretName != "" {
		out.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{want.Host}, SecretName: string(want.TLSSecretName)}}
	}
	return out
}

// DatabasePolicy lets the Pods of a MyApp and of its migrations reach the PostgreSQL of SampleDBs of its namespace, and
// their poolers, also where spec.network.from of those does not name them.
func DatabasePolicy(app *v1.MyApp, sampleDBs []string) *networkingv1.NetworkPolicy {
	tcp, port := corev1.ProtocolTCP, intstr.FromInt32(naming.PortPostgreSQL)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(app, naming.DatabasePolicy(app.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{
						Key: naming.LabelComponent, Operator: metav1.LabelSelectorOpIn,
						Values: []string{
							naming.ComponentInstance, naming.ComponentReader, naming.ComponentPooler,
							naming.ComponentReadPool,
						},
					},
					{Key: naming.LabelSampleDB, Operator: metav1.LabelSelectorOpIn, Values: sampleDBs},
				},
			},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
				From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{naming.LabelMyApp: app.Name},
				}}},
			}},
		},
	}
}

// Budget lets one Pod at a time be evicted. A single one has none (nil): it could never be evicted.
func Budget(app *v1.MyApp) *policyv1.PodDisruptionBudget {
	most := Replicas(app.Spec, nil)
	if app.Spec.Autoscaling != nil {
		most = app.Spec.Autoscaling.MaxReplicas
	}
	if most <= 1 {
		return nil
	}
	one, always := intstr.FromInt32(1), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(app, naming.App(app.Name)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &one,
			Selector:       &metav1.LabelSelector{MatchLabels: naming.AppSelector(app.Name)},
			// A Pod that is not ready serves nobody; a drain may always take it.
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

// Autoscaler lets the number of Pods follow the use of the CPU, nil where that is not wanted.
func Autoscaler(app *v1.MyApp) *autoscalingv2.HorizontalPodAutoscaler {
	want := app.Spec.Autoscaling
	if want == nil {
		return nil
	}
	least, target := want.MinReplicas, want.TargetCPUUtilizationPercentage
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: meta(app, naming.App(app.Name)),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: naming.App(app.Name),
			},
			MinReplicas: &least,
			MaxReplicas: want.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target,
					},
				},
			}},
		},
	}
}
