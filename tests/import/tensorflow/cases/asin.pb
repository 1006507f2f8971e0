
;
x0Placeholder*
dtype0*
shape:

AsinAsinx0*
T0
#
IdentityIdentityAsin*
T0