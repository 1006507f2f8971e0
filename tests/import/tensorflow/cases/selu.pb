
;
x0Placeholder*
dtype0*
shape:

SeluSelux0*
T0
#
IdentityIdentitySelu*
T0