
;
x0Placeholder*
dtype0*
shape:

ReluRelux0*
T0
#
IdentityIdentityRelu*
T0