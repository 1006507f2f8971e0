
7
x0Placeholder*
dtype0*
shape:
3
x1Placeholder*
dtype0*
shape
:
L
einsum/EinsumEinsumx0x1*
N*
equationabc,cd->abd*
T0
,
IdentityIdentityeinsum/Einsum*
T0
H
Einsum_1Einsumx0x0*
N*
equationabc,adc->abd*
T0
)

Identity_1IdentityEinsum_1*
T0