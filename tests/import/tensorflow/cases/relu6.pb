
;
x0Placeholder*
dtype0*
shape:

Relu6Relu6x0*
T0
$
IdentityIdentityRelu6*
T0