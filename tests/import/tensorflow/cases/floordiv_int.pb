
3
x0Placeholder*
dtype0*
shape
:
/
x1Placeholder*
dtype0*
shape:
%
FloorDivFloorDivx0x1*
T0
'
IdentityIdentityFloorDiv*
T0